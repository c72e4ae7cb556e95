"""Bounds the work that content streams of a PDF cause, before PDFium reads them: it has no limits of its own.

PDFium makes an object in memory of each operator, and reads a form again for each operator ``Do``, so that some
kilobytes end in hours or gigabytes, and with the page's process. Here a stream that unpacks to more than
``parser.unpack.max.ratio`` times its size, or to more operators than :data:`MAX_OPERATORS`, is cut there, and forms
whose forms multiply lose their ``Do``. What is left is text that PDFium reads. Streams are replaced in place, by fewer
bytes, so that all offsets of the file remain right.

Only streams that Flate compresses, once or several times, and plain ones are examined; encrypted ones are not.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

MAX_OPERATORS = 1_000_000
"""Operators of one stream that make an object in memory."""
MAX_FORM_READS = 2_000
"""Times that forms are read for one ``Do`` of a page."""

_MIN_CUT_BYTES = 1 << 20  # every stream may unpack to as many bytes
_MANY_BYTES = 8 << 20  # shorter streams have no more than MAX_OPERATORS that matter
_MAX_DICT_BYTES = 16_384
_MAX_OPERANDS = 2_048
_MAX_FORMS = 20_000
_OBJECT = re.compile(rb"(\d{1,10})\s+\d{1,5}\s+obj\b")
_LENGTH = re.compile(rb"/Length\s+(\d{1,10})(?!\s+\d+\s+R)")
_FILTER = re.compile(rb"/Filter\s*(?:(/\w+)|\[([^\]]{0,200})\])")
_NO_CONTENT = re.compile(
    rb"/Subtype\s*/(?:Image|XML|Type1C|CIDFontType0C|OpenType)\b|/Type\s*/(?:ObjStm|XRef)\b|/Length1\b"
)
_IS_FORM = re.compile(rb"/Subtype\s*/Form\b")
_IS_FILE = re.compile(rb"/Type\s*/EmbeddedFile\b")
_OPERATOR = re.compile(rb"(?<![\w/])(?:T[jJ]|Do|[SsfFBbn]\*?|sh|EI|['\"])(?!\w)")
_DO = re.compile(rb"/([^\s/<>\[\](){}%]+)\s+Do(?!\w)")
_XOBJECTS = re.compile(rb"/XObject\s*<<([^<>]*)>>")
_REFERENCE = re.compile(rb"/([^\s/<>\[\](){}%]+)\s+(\d{1,10})\s+\d{1,5}\s+R")


class _Stream(NamedTuple):
    """A stream: number and dictionary of its object, and where its bytes are; ``packed``: how often Flate packs it."""

    number: int
    header: bytes
    start: int
    end: int
    packed: int


class _Form(NamedTuple):
    """A form with the forms that it draws; None stands for one that is not known."""

    stream: _Stream
    drawn: list[int | None]


def limit_pdf_content(data: bytes, max_ratio: int) -> bytes:
    """Return the file with cut streams, the same object if nothing is beyond the limits.

    ``max_ratio``: maximum ratio of unpacked to packed bytes of a stream, 0 for no limit.
    """
    changed: dict[int, tuple[_Stream, bytes]] = {}
    forms: dict[int, _Form] = {}
    for stream in iter_content_streams(data):
        found = unpack_stream(data, stream, max_ratio)
        if found is None:
            continue
        content, is_cut = found
        if is_cut:
            changed[stream.start] = stream, content
        if len(forms) < _MAX_FORMS and _IS_FORM.search(stream.header) and b"Do" in content:
            forms[stream.number] = _Form(stream, _find_drawn_forms(stream.header, content))
    for number in _find_multiplying_forms(forms):
        stream = forms[number].stream
        content = (
            changed[stream.start][1]
            if stream.start in changed
            else (unpack_stream(data, stream, max_ratio) or (b"",))[0]
        )
        changed[stream.start] = stream, _DO.sub(b" ", content)
    return _replace(data, changed) if changed else data


def iter_content_streams(data: bytes) -> Iterator[_Stream]:
    """Yield the streams that may be content, in one pass over the file."""
    at = 0
    while (keyword := data.find(b"stream", at)) >= 0:
        header_start = max(at, keyword - _MAX_DICT_BYTES)  # behind the last stream: no byte is searched twice
        at = start = keyword + 6
        if data[start : start + 2] == b"\r\n":
            start += 2
        elif data[start : start + 1] in (b"\n", b"\r"):
            start += 1
        else:
            continue
        object_end = data.rfind(b"obj", header_start, keyword)
        if object_end < 0:
            continue
        opening = _last(_OBJECT.finditer(data, max(header_start, object_end - 24), object_end + 3))
        header = data[object_end + 3 : keyword]
        if opening is None or not header.rstrip().endswith(b">>"):
            continue
        length = _LENGTH.search(header)
        end = start + int(length[1]) if length else -1
        if end < 0 or data.find(b"endstream", end, end + 16) < 0:
            end = data.find(b"endstream", start)
            if end < 0:
                return
        at = end
        if _NO_CONTENT.search(header):
            continue
        filters = _FILTER.search(header)
        names = (filters[1] or filters[2]).split() if filters else []
        if all(name in (b"/FlateDecode", b"/Fl") for name in names) and b"/DecodeParms" not in header:
            yield _Stream(int(opening[1]), header, start, end, len(names))


def unpack_stream(data: bytes, stream: _Stream, max_ratio: int) -> tuple[bytes, bool] | None:
    """Return the content of a stream, and whether it was cut; None if it is broken."""
    content = data[stream.start : stream.end]
    limit = max(_MIN_CUT_BYTES, max_ratio * len(content)) if max_ratio > 0 else 0
    is_cut = False
    for _ in range(stream.packed):
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(content, limit + 1 if limit else 0)
        except zlib.error:
            return None
        if limit and len(content) > limit:
            content, is_cut = _cut_after_operator(content[:limit]), True
    if len(content) > _MANY_BYTES and not _IS_FILE.search(stream.header):
        for number, operator in enumerate(_OPERATOR.finditer(content), 1):
            if number > MAX_OPERATORS:
                return content[: operator.start()], True
    return content, is_cut


def _cut_after_operator(content: bytes) -> bytes:
    """Return the content without the operator that was cut in two; an array that is open is shown."""
    last = _last(_OPERATOR.finditer(content, max(0, len(content) - _MAX_OPERANDS)))
    if last is not None:
        return content[: last.end()]
    if content.rfind(b"[") > content.rfind(b"]"):
        return content[: max(content.rfind(b")"), content.rfind(b">")) + 1] + b"]TJ"
    return content[: content.rfind(b" ") + 1]


def _last(matches: Iterator[re.Match[bytes]]) -> re.Match[bytes] | None:
    return next(iter(deque(matches, maxlen=1)), None)


def _find_drawn_forms(header: bytes, content: bytes) -> list[int | None]:
    numbers: dict[bytes, int | None] = {}
    for resources in _XOBJECTS.finditer(header):
        for name, number in _REFERENCE.findall(resources[1]):
            numbers[name] = int(number) if numbers.get(name, int(number)) == int(number) else None
    return [numbers.get(name) for name in _DO.findall(content)]


def _find_multiplying_forms(forms: dict[int, _Form]) -> list[int]:
    """Return the forms whose ``Do`` read more than MAX_FORM_READS forms, or themselves; each counts as one afterwards.

    An unknown form is taken for the one that reads most of those known so far.
    """
    reads: dict[int, int] = {}
    found: list[int] = []
    active: set[int] = set()
    largest = 1
    for root in forms:
        waiting = [(root, False)]
        while waiting:
            number, is_complete = waiting.pop()
            if is_complete:
                active.discard(number)
                drawn = forms[number].drawn
                total = 1 + sum(largest if each is None else reads.get(each, 1) for each in drawn)
                if total > MAX_FORM_READS or any(each in active or each == number for each in drawn):
                    found.append(number)
                    total = 1
                reads[number] = total
                largest = max(largest, total)
            elif number not in reads and number not in active:
                active.add(number)
                waiting.append((number, True))
                waiting += [(each, False) for each in set(forms[number].drawn) if each in forms and each not in reads]
    return found


def _replace(data: bytes, changed: dict[int, tuple[_Stream, bytes]]) -> bytes:
    """Return the file with other content of some streams, filled with blanks to their size."""
    parts: list[bytes] = []
    at = 0
    for start, (stream, content) in sorted(changed.items()):
        size = stream.end - start
        packed = content
        for _ in range(stream.packed):
            packed = zlib.compress(packed, 9)
        if len(packed) > size:  # never seen: the content is a part of what fitted
            packed = b""
        parts += [data[at:start], packed.ljust(size)]
        at = stream.end
    return b"".join([*parts, data[at:]])
