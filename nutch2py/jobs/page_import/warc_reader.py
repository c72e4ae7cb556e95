"""Reads WARC files of any origin, plain or gzip (a member per record or not), within bounded memory.

Files may be cut, damaged or hostile: a record that is not readable becomes a reason, and reading continues at the next
``WARC/`` line or gzip member.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

_CHUNK_BYTES = 1 << 16
_MAX_LINE = 1 << 16
_MAX_HEADER_BYTES = 1 << 20
_MAX_UNREAD = 64 << 20  # bytes of a file that are read twice
_GZIP_MAGIC = b"\x1f\x8b\x08"
_FIRST_LINE = re.compile(rb"WARC/[0-9]\.[0-9]{1,2}\s*")


@dataclass(slots=True)
class WarcRecord:
    """A record. ``block`` holds its first bytes, ``is_cut`` says whether it has more than these.

    Attributes:
        headers: Headers by lower-case name.
        block: The block up to the limit.
        is_cut: Whether the block is longer than the limit.
    """

    headers: dict[str, str] = field(default_factory=dict)
    block: bytes = b""
    is_cut: bool = False

    @property
    def kind(self) -> str:
        """``WARC-Type`` in lower case."""
        return self.headers.get("warc-type", "").lower()

    @property
    def url(self) -> str:
        """``WARC-Target-URI``, without the angle brackets of early writers."""
        return self.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


class _UnpackedStream:
    """Bytes of a file that may consist of gzip members. A broken member ends at its error; ``errors`` counts them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._raw = file.read(_CHUNK_BYTES)
        self._is_gzip = self._raw[:2] == _GZIP_MAGIC[:2]
        self._decoder = zlib.decompressobj(31) if self._is_gzip else None
        self._buffer = b""
        self._at = 0
        self._has_begun = False
        self.errors = 0

    def _next_bytes(self) -> bytes:
        """Return some unpacked bytes, b"" at the end of a gzip member or of the file."""
        if self._decoder is None:
            data, self._raw = self._raw, b""
            return data or self._file.read(_CHUNK_BYTES)
        while not self._decoder.eof:
            if not self._raw:
                self._raw = self._file.read(_CHUNK_BYTES)
                if not self._raw:
                    if not self._decoder.eof:
                        self.errors += self._has_begun
                        self._has_begun = False
                    return b""
            try:
                data = self._decoder.decompress(self._raw, _CHUNK_BYTES)
            except zlib.error:
                self.errors += 1
                self._skip_member()
                return b""
            self._has_begun = True
            self._raw = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail
            if data:
                return data
        return b""

    def _skip_member(self) -> None:
        """Go to the next bytes that look like a gzip member."""
        raw = self._raw[1:]
        while (at := raw.find(_GZIP_MAGIC)) < 0:
            more = self._file.read(_CHUNK_BYTES)
            if not more:
                self._raw = b""
                self._decoder = zlib.decompressobj(31)
                self._has_begun = False
                return
            raw = raw[-2:] + more
        self._raw = raw[at:]
        self._decoder = zlib.decompressobj(31)
        self._has_begun = False

    def next_member(self) -> bool:
        """Continue with the next gzip member; return False at the end of the file. A plain file has one member."""
        if self._decoder is None:
            return bool(self._raw) or self._peek_file()
        if not self._decoder.eof:
            return bool(self._raw)
        self._decoder = zlib.decompressobj(31)
        self._has_begun = False
        while not self._raw.lstrip(b"\0"):  # the padding of tapes
            self._raw = self._file.read(_CHUNK_BYTES)
            if not self._raw:
                return False
        if self._raw[:1] != _GZIP_MAGIC[:1]:
            self._raw = self._raw.lstrip(b"\0")
            if self._raw[:1] != _GZIP_MAGIC[:1]:
                self.errors += 1
                self._skip_member()
        return bool(self._raw)

    def continue_record(self) -> bool:
        """Go to the next gzip member if it continues a record; return False if it begins one, or at the end."""
        return self._decoder is not None and self.next_member() and self.peek(5) != b"WARC/"

    def unread(self, data: bytes) -> None:
        """Put bytes back."""
        self._buffer = data + self._buffer[self._at :]
        self._at = 0

    def _peek_file(self) -> bool:
        self._raw = self._file.read(_CHUNK_BYTES)
        return bool(self._raw)

    def fill(self) -> bool:
        """Buffer more bytes of the member; return False at its end."""
        data = self._next_bytes()
        if not data:
            return False
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        return True

    def peek(self, size: int) -> bytes:
        """Return the next bytes of the member, fewer at its end."""
        while len(self._buffer) - self._at < size and self.fill():
            pass
        return self._buffer[self._at : self._at + size]

    def read_line(self) -> bytes:
        """Return the next line with its line feed, at most 64 KiB; b"" at the end of the member."""
        start = 0
        while True:
            end = self._buffer.find(b"\n", self._at + start)
            if end >= 0 or len(self._buffer) - self._at >= _MAX_LINE:
                break
            start = len(self._buffer) - self._at
            if not self.fill():
                break
        stop = min(len(self._buffer) if end < 0 else end + 1, self._at + _MAX_LINE)
        line = self._buffer[self._at : stop]
        self._at = stop
        return line

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes; b"" at the end of the member."""
        if self._at >= len(self._buffer) and not self.fill():
            return b""
        data = self._buffer[self._at : self._at + size]
        self._at += len(data)
        return data


class WarcReader:
    """Yields the records of a WARC file, or reasons why something was not readable.

    Args:
        file: The file.
        max_block_bytes: Bytes of a block that are kept.
    """

    def __init__(self, file: IO[bytes], max_block_bytes: int) -> None:
        self._stream = _UnpackedStream(file)
        self._max_block_bytes = max_block_bytes
        self._unread_left = _MAX_UNREAD

    def __iter__(self) -> Iterator[WarcRecord | str]:
        stream = self._stream
        known_errors = 0
        is_garbage = False
        while True:
            line = stream.read_line()
            if not line:
                if stream.errors > known_errors:
                    known_errors = stream.errors
                    yield "damaged_gzip"
                if not stream.next_member():
                    break
                continue
            if not line.endswith(b"\n") and len(line) < _MAX_LINE and stream.continue_record():
                line += stream.read_line()
            if not line.strip(b"\r\n"):
                continue
            if not _FIRST_LINE.fullmatch(line):
                if not is_garbage:
                    yield "not_a_record"
                is_garbage = True
                continue
            found = self._read_record()
            is_garbage = isinstance(found, str)  # the rest of a broken record is part of it
            # an error of gzip in the record is that of the record
            known_errors = stream.errors
            yield found
        if stream.errors > known_errors:
            yield "damaged_gzip"

    def _read_record(self) -> WarcRecord | str:
        record = WarcRecord()
        size, last = 0, ""
        while True:
            line = self._stream.read_line()
            if not line.endswith(b"\n") and len(line) < _MAX_LINE and self._stream.continue_record():
                line += self._stream.read_line()
            if not line.endswith(b"\n"):
                return "header_too_long" if len(line) >= _MAX_LINE else "truncated"
            size += len(line)
            if size > _MAX_HEADER_BYTES:
                return "header_too_long"
            text = line.rstrip(b"\r\n").decode("utf-8", "replace")
            if not text:
                break
            if text[0] in " \t" and last:
                record.headers[last] += " " + text.strip()
                continue
            name, colon, value = text.partition(":")
            if colon:
                last = name.strip().lower()
                record.headers.setdefault(last, value.strip())
        length = record.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            return "no_length"
        return self._read_block(record, int(length))

    def _read_block(self, record: WarcRecord, length: int) -> WarcRecord | str:
        stream = self._stream
        block = bytearray()
        left, known_errors = length, stream.errors
        while left:
            data = stream.read(min(left, _CHUNK_BYTES))
            if not data:
                if stream.errors > known_errors:
                    return "truncated"
                if stream.continue_record():
                    continue
                self._unread_next_record(block, length - left)
                return "wrong_length" if stream.peek(1) else "truncated"
            left -= len(data)
            if len(block) < self._max_block_bytes:
                block += data[: self._max_block_bytes - len(block)]
        record.block, record.is_cut = bytes(block), length > self._max_block_bytes
        end = stream.peek(2)
        if end and end[:1] not in b"\r\n":
            self._unread_next_record(block, length)
            return "wrong_length"
        return record

    def _unread_next_record(self, block: bytearray, size: int) -> None:
        """Put back a record that a wrong length made part of the block before it."""
        at = block.find(b"WARC/")
        if at >= 0 and len(block) == size and len(block) - at <= self._unread_left:
            self._unread_left -= len(block) - at
            self._stream.unread(bytes(block[at:]))
