"""Bodies in chunks: encodings undone and the limit kept while the bytes come in, so that a bomb ends at the limit."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Any

_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
ENCODINGS = "x-gzip, gzip, deflate"
"""What the fetcher asks for with ``Accept-Encoding``."""


class Body:
    """The body of one answer. ``limit``: bytes to keep at most, -1 for all.

    An encoding that is a lie (the bytes are not compressed at all) is ignored; a stream that breaks in its middle
    gives what was good of it, as browsers and Nutch's ``unzipBestEffort`` do.
    """

    __slots__ = ("_chunks", "_done", "_inflater", "_pending", "encoding", "limit", "size", "truncated")

    def __init__(self, encoding: str, limit: int) -> None:
        self.encoding = encoding
        self.limit, self.size = limit, 0
        self.truncated = False
        self._chunks: list[bytes] = []
        self._pending = b""
        self._inflater: Any = None
        self._done = False  # behind the end of the compressed stream

    def feed(self, data: bytes) -> bool:
        """Take in bytes as they came; return False when the limit is reached and no more are wanted."""
        if not self.encoding:
            return self._keep(data)
        if self._done:
            return True
        if self._inflater is None:
            data = self._pending + data
            if len(data) < 2:  # a magic number needs two bytes
                self._pending = data
                return True
            self._pending = b""
            bits = self._window(data)
            if bits is None:
                self.encoding = ""
                return self._keep(data)
            self._inflater = zlib.decompressobj(bits)
        return self._inflate(data)

    def _window(self, data: bytes) -> int | None:
        """Return what the first bytes say of the stream, None when they are not of the encoding named."""
        if data[:2] == b"\x1f\x8b":
            return _GZIP
        if self.encoding != "deflate":
            return None
        return _ZLIB if data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0 else _RAW

    def _inflate(self, data: bytes) -> bool:
        while data and self._inflater is not None:
            room = 65536 if self.limit < 0 else min(65536, self.limit - self.size + 1)
            before = self._inflater.copy()
            try:
                out = self._inflater.decompress(data, room)
            except zlib.error:
                self._done = True
                return self._salvage(before, data)
            if not self._keep(out):
                return False
            if self._inflater.eof:
                data = self._inflater.unused_data
                if data[:2] != b"\x1f\x8b":  # padding, not another member
                    self._done = True
                    return True
                self._inflater = zlib.decompressobj(_GZIP)
                continue
            data = self._inflater.unconsumed_tail
        return True

    def _salvage(self, inflater: Any, data: bytes) -> bool:
        """Keep what comes of the bytes before the one at which a stream breaks."""
        with suppress(zlib.error):
            for position in range(len(data)):
                if not self._keep(inflater.decompress(data[position : position + 1])):
                    return False
        return True

    def _keep(self, data: bytes) -> bool:
        if 0 <= self.limit < self.size + len(data):
            data = data[: self.limit - self.size]
            self.truncated = True
        self._chunks.append(data)
        self.size += len(data)
        return not self.truncated

    def content(self) -> bytes:
        """Return what has been kept so far."""
        if self._pending:
            self._keep(self._pending)
            self._pending = b""
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)


def encoding_of(value: str | None) -> str:
    """Return ``gzip``, ``deflate`` or "" (nothing to undo) for a ``Content-Encoding`` header."""
    token = (value or "").strip().lower()
    if token in ("gzip", "x-gzip"):
        return "gzip"
    return "deflate" if token == "deflate" else ""
