"""What photographers write into pictures (IPTC-IIM 4.2, in the resources of Photoshop): keywords, caption, headline."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from nutch2py.parser.charset import guess_text
from nutch2py.parser.formats.parsed_document import Document, join_words

HEADER = b"Photoshop 3.0\0"
_IPTC = 0x0404  # number of the resource
_NAMES = {5: "title", 25: "dc:subject", 80: "dc:creator", 105: "photoshop:Headline", 116: "dc:rights",
          120: "dc:description"}  # fmt: skip
_MOST = 1000  # values of a picture


def read_iptc(segment: bytes, document: Document) -> None:
    """Describe a picture by what an APP13 segment of a JPEG says; values of one name are joined."""
    found: dict[str, list[bytes]] = {}
    for resource in _resources(segment):
        for _, (name, value) in zip(range(_MOST), _values(resource), strict=False):
            if name in _NAMES:
                found.setdefault(_NAMES[name], []).append(value)
    for label, values in found.items():
        document.describe(label, join_words((guess_text(value).strip(" \0") for value in values), ", "))


def _resources(segment: bytes) -> Iterator[bytes]:
    """Yield the IPTC resources of a segment: each has a mark, a number, a name and a length, padded to even."""
    at = len(HEADER)
    while segment[at : at + 4] == b"8BIM" and at + 12 <= len(segment):
        number, name = struct.unpack_from(">HB", segment, at + 4)
        at += 6 + name + 1 + (name + 1) % 2
        if at + 4 > len(segment):
            return
        (length,) = struct.unpack_from(">I", segment, at)
        if number == _IPTC:
            yield segment[at + 4 : at + 4 + length]
        at += 4 + length + length % 2


def _values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of what describes the picture (record 2)."""
    at = 0
    while at + 5 <= len(data) and data[at] == 0x1C:
        record, number, length = struct.unpack_from(">BBH", data, at + 1)
        if length & 0x8000:  # a value of more than 32 KB: a preview
            return
        if record == 2:
            yield number, data[at + 5 : at + 5 + length]
        at += 5 + length
