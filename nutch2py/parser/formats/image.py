"""Images: extracts size and embedded metadata (EXIF, IPTC-IIM 4.2 in Photoshop resources). Never decodes pixels."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.parser.formats.document_parser import (
    DocumentParser,
    ParsedDocument,
    UnreadableDocumentError,
    join_nonempty,
)
from nutch2py.parser.formats.heif import is_heif, read_heif
from nutch2py.records.webpage import WebPage

_PHOTOSHOP_HEADER = b"Photoshop 3.0\0"
_IPTC_RESOURCE = 0x0404
_IPTC_NAMES = {5: "title", 25: "dc:subject", 80: "dc:creator", 105: "photoshop:Headline", 116: "dc:rights",
          120: "dc:description"}  # fmt: skip
_MAX_IPTC_VALUES = 1000  # per image


def _read_iptc(segment: bytes, document: ParsedDocument) -> None:
    """Set metadata from an APP13 segment of a JPEG; values of one name are joined."""
    found: dict[str, list[bytes]] = {}
    for resource in _iptc_resources(segment):
        for _, (name, value) in zip(range(_MAX_IPTC_VALUES), _iptc_values(resource), strict=False):
            if name in _IPTC_NAMES:
                found.setdefault(_IPTC_NAMES[name], []).append(value)
    for label, values in found.items():
        document.set_metadata(label, join_nonempty((decode_unlabeled(value).strip(" \0") for value in values), ", "))


def _iptc_resources(segment: bytes) -> Iterator[bytes]:
    """Yield the IPTC resources of a segment: each has a mark, a number, a name and a length, padded to even."""
    at = len(_PHOTOSHOP_HEADER)
    while segment[at : at + 4] == b"8BIM" and at + 12 <= len(segment):
        number, name = struct.unpack_from(">HB", segment, at + 4)
        at += 6 + name + 1 + (name + 1) % 2
        if at + 4 > len(segment):
            return
        (length,) = struct.unpack_from(">I", segment, at)
        if number == _IPTC_RESOURCE:
            yield segment[at + 4 : at + 4 + length]
        at += 4 + length + length % 2


def _iptc_values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of the descriptive entries (record 2)."""
    at = 0
    while at + 5 <= len(data) and data[at] == 0x1C:
        record, number, length = struct.unpack_from(">BBH", data, at + 1)
        if length & 0x8000:  # a value of more than 32 KB: a preview
            return
        if record == 2:
            yield number, data[at + 5 : at + 5 + length]
        at += 5 + length


_TAGS = {
    0x010E: "dc:description", 0x010F: "tiff:Make", 0x0110: "tiff:Model", 0x0131: "tiff:Software", 0x013B: "dc:creator",
    0x8298: "dc:rights", 0x9003: "exif:DateTimeOriginal", 0x0132: "dcterms:modified", 0x0112: "tiff:Orientation",
    0x829A: "exif:ExposureTime", 0x829D: "exif:FNumber", 0x920A: "exif:FocalLength",
}  # fmt: skip
_VALUE_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 9: 4, 10: 8}
_EXIF_TAG, _GPS_TAG = 0x8769, 0x8825
_NON_FRAME_MARKERS = frozenset({0xC4, 0xC8, 0xCC})  # markers in the range of frame markers that are not frames
_MAX_TEXT_BYTES = 1 << 16
_MAX_TOTAL_TEXT = 1 << 20  # characters of all texts of an image: compressed ones may expand a thousandfold


class ImageParser(DocumentParser):
    """Stores width, height, EXIF, IPTC and comments as metadata; description, keywords and comments also as text."""

    content_types = r"image/(?:png|jpeg|gif|webp|bmp|tiff|heic|heif|avif)"

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read an image; the first bytes decide its format."""
        try:
            for magic, reader in (
                (b"\x89PNG\r\n\x1a\n", _read_png), (b"\xff\xd8", _read_jpeg), (b"GIF8", _read_gif),
                (b"RIFF", _read_webp), (b"BM", _read_bmp),
                (b"II*\0", _read_tiff), (b"MM\0*", _read_tiff),
            ):  # fmt: skip
                if content.startswith(magic):
                    reader(content, document)
                    break
            else:
                if not is_heif(content):
                    raise UnreadableDocumentError("no image of a known format")
                _read_heif(content, document)
        except (struct.error, IndexError, ValueError) as error:
            raise UnreadableDocumentError(f"image: {error}") from None
        for name in ("dc:description", "dc:subject"):
            document.add_text(document.metadata.get(name, ""))


def _set_size(document: ParsedDocument, width: int, height: int) -> None:
    document.set_metadata("tiff:ImageWidth", width)
    document.set_metadata("tiff:ImageLength", height)


def _read_png(content: bytes, document: ParsedDocument) -> None:
    position, room = 8, _MAX_TOTAL_TEXT
    while position + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        data = content[position + 8 : position + 8 + length]
        position += 12 + length
        if kind == b"IHDR":
            _set_size(document, *struct.unpack_from(">II", data))
        elif kind == b"eXIf":
            read_exif(data, document)
        elif kind in (b"tEXt", b"zTXt", b"iTXt") and room > 0:
            name, _, value = data.partition(b"\0")
            text = _decode_png_text(kind, value, min(_MAX_TEXT_BYTES, room))
            room -= len(text)
            label = {
                "Title": "title",
                "Author": "dc:creator",
                "Description": "dc:description",
                "Copyright": "dc:rights",
            }
            document.set_metadata(label.get(name.decode("latin-1"), f"png:{name.decode('latin-1')[:79]}"), text)
    if "tiff:ImageWidth" not in document.metadata:
        raise UnreadableDocumentError("PNG without a header")


def _decode_png_text(kind: bytes, value: bytes, most: int) -> str:
    try:
        if kind == b"tEXt":
            return value[:most].decode("latin-1")
        if kind == b"zTXt":
            return zlib.decompressobj().decompress(value[1:], most).decode("latin-1")
        packed, rest = value[0], value[2:].split(b"\0", 2)[2]
        return (zlib.decompressobj().decompress(rest, most) if packed else rest[:most]).decode("utf-8", "replace")
    except (zlib.error, IndexError):
        return ""


def _read_jpeg(content: bytes, document: ParsedDocument) -> None:
    position = 2
    while position + 4 <= len(content):
        if content[position] != 0xFF:
            position += 1
            continue
        marker = content[position + 1]
        if marker in (0xFF, 0x00, 0x01) or 0xD0 <= marker <= 0xD8:
            position += 1 if marker == 0xFF else 2
            continue
        if marker in (0xD9, 0xDA):
            break
        (length,) = struct.unpack_from(">H", content, position + 2)
        data = content[position + 4 : position + 2 + length]
        position += 2 + max(2, length)
        if 0xC0 <= marker <= 0xCF and marker not in _NON_FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, 1)
            _set_size(document, width, height)
        elif marker == 0xE1 and data.startswith(b"Exif\0\0"):
            read_exif(data[6:], document)
        elif marker == 0xED and data.startswith(_PHOTOSHOP_HEADER):
            _read_iptc(data, document)
        elif marker == 0xFE:
            document.set_metadata("w3c:comment", data.decode("utf-8", "replace"))
            document.add_text(data.decode("utf-8", "replace"))
    if "tiff:ImageWidth" not in document.metadata:
        raise UnreadableDocumentError("JPEG without a frame")


def _read_gif(content: bytes, document: ParsedDocument) -> None:
    _set_size(document, *struct.unpack_from("<HH", content, 6))


def _read_bmp(content: bytes, document: ParsedDocument) -> None:
    width, height = struct.unpack_from("<ii", content, 18)
    _set_size(document, width, abs(height))


def _read_webp(content: bytes, document: ParsedDocument) -> None:
    if content[8:12] != b"WEBP":
        raise UnreadableDocumentError("RIFF, but not WebP")
    kind = content[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        _set_size(document, width & 0x3FFF, height & 0x3FFF)
    elif kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        _set_size(document, (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    else:
        raw = content[24:30]
        _set_size(document, int.from_bytes(raw[:3], "little") + 1, int.from_bytes(raw[3:6], "little") + 1)


def _read_heif(content: bytes, document: ParsedDocument) -> None:
    width, height, exif = read_heif(content)
    read_exif(exif, document)
    if width and height:  # of the image itself: EXIF may have the size of the sensor
        _set_size(document, width, height)


def _read_tiff(content: bytes, document: ParsedDocument) -> None:
    read_exif(content, document)
    if not document.metadata:
        raise UnreadableDocumentError("TIFF without a directory")


def read_exif(data: bytes, document: ParsedDocument) -> None:
    """Set metadata from the directories of a TIFF structure (EXIF); each directory is read once."""
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    if order is None or len(data) < 8:
        return
    seen: set[int] = set()
    left = [len(data)]
    queue = [(struct.unpack_from(f"{order}I", data, 4)[0], False)]
    coordinates: dict[int, tuple[object, ...]] = {}
    while queue and len(seen) < 16:
        offset, is_gps = queue.pop()
        if offset in seen:
            continue
        seen.add(offset)
        for tag, values in _read_directory(data, order, offset, left):
            if tag in (_EXIF_TAG, _GPS_TAG) and not is_gps and isinstance(values[0], int):
                queue.append((values[0], tag == _GPS_TAG))
            elif is_gps:
                coordinates[tag] = values
            elif tag == 0x0100:
                document.set_metadata("tiff:ImageWidth", values[0])
            elif tag == 0x0101:
                document.set_metadata("tiff:ImageLength", values[0])
            elif tag in _TAGS:
                document.set_metadata(_TAGS[tag], values[0])
    for name, degrees, side in (("geo:lat", 2, 1), ("geo:long", 4, 3)):
        parts = [value for value in coordinates.get(degrees, ()) if isinstance(value, int | float)]
        if len(parts) == 3:
            value = parts[0] + parts[1] / 60 + parts[2] / 3600
            document.set_metadata(name, round(-value if str(coordinates.get(side, ("",))[0])[:1] in "SW" else value, 6))


def _read_directory(data: bytes, order: str, offset: int, left: list[int]) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield the tags of a directory with their values. ``left``: bytes that values may cover, as they never overlap."""
    if offset + 2 > len(data):
        return
    (count,) = struct.unpack_from(f"{order}H", data, offset)
    for index in range(min(count, (len(data) - offset - 2) // 12)):
        at = offset + 2 + index * 12
        tag, kind, length = struct.unpack_from(f"{order}HHI", data, at)
        size = _VALUE_SIZES.get(kind, 0) * length
        start = at + 8 if size <= 4 else struct.unpack_from(f"{order}I", data, at + 8)[0]
        if not size or size > _MAX_TEXT_BYTES or start + size > len(data):
            continue
        left[0] -= size
        if left[0] < 0:
            return
        raw = data[start : start + size]
        if kind in (1, 2, 7):
            yield tag, (raw.split(b"\0")[0].decode("utf-8", "replace"),)
        elif kind in (5, 10):
            numbers = struct.unpack(f"{order}{2 * length}{'I' if kind == 5 else 'i'}", raw)
            yield tag, tuple(a / b if b else 0.0 for a, b in zip(numbers[::2], numbers[1::2], strict=True))
        else:
            yield tag, struct.unpack(f"{order}{length}{ {3: 'H', 4: 'I', 9: 'i'}[kind] }", raw)
