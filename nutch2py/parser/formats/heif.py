"""HEIF images (HEIC, AVIF): size and EXIF item (ISO/IEC 14496-12 and 23008-12). Never decodes pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_MAX_BOXES = 4096  # of one level
_MAX_ITEMS = 4096
_MAX_EXIF_BYTES = 1 << 20
_FILE_OFFSET, _IDAT_OFFSET = 0, 1  # construction methods of ItemLocationBox, 8.11.3


class HeifMetadata(NamedTuple):
    """Size in pixels of the primary image, 0 × 0 if unknown, and the TIFF structure of the EXIF item, b"" if none."""

    width: int
    height: int
    exif: bytes


def is_heif(content: bytes) -> bool:
    """Return whether a file begins as an ISO base media file of an image."""
    return content[4:8] == b"ftyp" and content[8:12] in {
        b"heic", b"heix", b"hevc", b"heim", b"avif", b"avis", b"mif1", b"msf1",
    }  # fmt: skip


def read_heif(content: bytes) -> HeifMetadata:
    """Return the metadata of a file.

    Raises:
        ValueError: The file has no metadata box.
        struct.error: A box is cut off.
    """
    meta = next((content[start:stop] for name, start, stop in _boxes(content, 0, len(content)) if name == b"meta"), b"")
    if not meta:
        raise ValueError("no metadata box")
    children = {name: meta[start:stop] for name, start, stop in _boxes(meta, 4, len(meta))}
    width, height = _primary_size(children.get(b"pitm", b""), children.get(b"iprp", b""))
    exif = b""
    item = _find_exif_item(children.get(b"iinf", b""))
    if item is not None:
        exif = _read_item(item, children.get(b"iloc", b""), content, children.get(b"idat", b""))
    if len(exif) > 4:  # ExifDataBlock: the offset of the TIFF header comes first
        exif = exif[4 + struct.unpack_from(">I", exif)[0] :]
    return HeifMetadata(width, height, exif)


def _boxes(data: bytes, start: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, and begin and end of the content, of the boxes of one level."""
    for _ in range(_MAX_BOXES):
        if start + 8 > stop:
            return
        size, name = struct.unpack_from(">I4s", data, start)
        header = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, start + 8)
            header = 16
        elif size == 0:
            size = stop - start
        if size < header:
            return
        yield name, start + header, min(start + size, stop)
        start += size


def _primary_size(primary: bytes, properties: bytes) -> tuple[int, int]:
    """Return the size of the primary item: its spatial extent (``ispe``), cropped by its clean aperture (``clap``)."""
    boxes: list[tuple[bytes, int]] = []
    associations = b""
    for name, start, stop in _boxes(properties, 0, len(properties)):
        if name == b"ipco":
            boxes = [(kind, begin) for kind, begin, _ in _boxes(properties, start, stop)]
        elif name == b"ipma":
            associations = properties[start:stop]
    if not primary or not associations:
        return 0, 0
    (item,) = struct.unpack_from(">H" if primary[0] == 0 else ">I", primary, 4)
    width = height = 0
    for index in _property_indexes(item, associations):
        if not 0 < index <= len(boxes):
            continue
        kind, begin = boxes[index - 1]
        if kind == b"ispe":
            width, height = struct.unpack_from(">II", properties, begin + 4)
        elif kind == b"clap":
            cropped_width, width_divisor, cropped_height, height_divisor = struct.unpack_from(
                ">IIII", properties, begin
            )
            if width_divisor and height_divisor:
                width, height = cropped_width // width_divisor, cropped_height // height_divisor
    return width, height


def _property_indexes(item: int, associations: bytes) -> Iterator[int]:
    """Yield the properties of an item, numbered from 1, in the order of ItemPropertyAssociationBox."""
    version, wide = associations[0], associations[3] & 1
    (count,) = struct.unpack_from(">I", associations, 4)
    at = 8
    for _ in range(min(count, _MAX_ITEMS)):
        (found,) = struct.unpack_from(">H" if version < 1 else ">I", associations, at)
        at += 2 if version < 1 else 4
        number = associations[at]
        at += 1
        if found == item:
            for place in range(number):
                if wide:
                    yield struct.unpack_from(">H", associations, at + 2 * place)[0] & 0x7FFF
                else:
                    yield associations[at + place] & 0x7F
            return
        at += number * (2 if wide else 1)


def _find_exif_item(infos: bytes) -> int | None:
    """Return the id of the first item of the type Exif; entries of version 2 have ids of 16 bits, of 3 of 32."""
    if not infos:
        return None
    start = 6 if infos[0] == 0 else 8
    for name, begin, _ in _boxes(infos, start, len(infos)):
        if name != b"infe" or infos[begin] not in (2, 3):
            continue
        form = ">HH4s" if infos[begin] == 2 else ">IH4s"
        item, _, kind = struct.unpack_from(form, infos, begin + 4)
        if kind == b"Exif":
            return int(item)
    return None


def _read_item(wanted: int, locations: bytes, content: bytes, idat: bytes) -> bytes:
    """Return the bytes of an item, joined from its extents."""
    if not locations:
        return b""
    version = locations[0]
    sizes = struct.unpack_from(">BB", locations, 4)
    offset_size, length_size = sizes[0] >> 4, sizes[0] & 15
    base_size, index_size = sizes[1] >> 4, sizes[1] & 15 if version in (1, 2) else 0
    at = 6

    def number(size: int) -> int:
        nonlocal at
        if at + size > len(locations):
            raise struct.error("item locations are cut off")
        at += size
        return int.from_bytes(locations[at - size : at], "big")

    for _ in range(min(number(2 if version < 2 else 4), _MAX_ITEMS)):
        item = number(2 if version < 2 else 4)
        method = number(2) & 15 if version in (1, 2) else _FILE_OFFSET
        number(2)  # data reference
        base = number(base_size)
        source = {_FILE_OFFSET: content, _IDAT_OFFSET: idat}.get(method, b"")
        found = b""
        for _ in range(number(2)):
            number(index_size)
            start, length = base + number(offset_size), number(length_size)
            if item == wanted and len(found) < _MAX_EXIF_BYTES:
                found += source[start : start + min(length or len(source), _MAX_EXIF_BYTES)]
        if item == wanted:
            return found
    return b""
