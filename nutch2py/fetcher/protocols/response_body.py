"""Body of a response: decodes it incrementally and enforces the content limit, at which decompression bombs stop."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_GZIP_WBITS, _ZLIB_WBITS, _RAW_WBITS = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_ZSTD_SLICE_BYTES = 256  # bytes of zstd per call: a block of four can expand to 128 KiB
_ZSTD_MAX_WINDOW = 8 << 20  # the window size that RFC 8878 recommends decoders to support
ACCEPT_ENCODING = "x-gzip, gzip, deflate"
"""Value of ``Accept-Encoding``, as in Nutch; servers send brotli and zstd regardless."""


class BodyDecoder:
    """Decodes the body of one response.

    A wrong encoding (the data is not compressed) is ignored; a corrupt stream yields its readable part, as browsers and
    Nutch's ``unzipBestEffort`` do.

    Args:
        encoding: See :func:`parse_content_encoding`.
        limit: Maximum number of bytes to keep, -1 for all.
    """

    __slots__ = ("_buffer", "_decoder", "_finished", "_pending", "encoding", "limit", "size", "truncated")

    def __init__(self, encoding: str, limit: int) -> None:
        self.encoding = encoding
        self.limit, self.size = limit, 0
        self.truncated = False
        self._buffer = bytearray()  # a list of small chunks would take many times their size
        self._pending = b""
        self._decoder: Any = None
        self._finished = False  # after the end of the compressed stream

    def feed(self, data: bytes) -> bool:
        """Add received bytes; return False once the limit is reached."""
        if not self.encoding:
            return self._append(data)
        if self._finished:
            return True
        if self.encoding in ("br", "zstd"):
            return self._decode_in_pieces(data)
        if self._decoder is None:
            data = self._pending + data
            if len(data) < 2:  # a magic number needs two bytes
                self._pending = data
                return True
            self._pending = b""
            bits = self._detect_wbits(data)
            if bits is None:
                self.encoding = ""
                return self._append(data)
            self._decoder = zlib.decompressobj(bits)
        return self._inflate(data)

    def _detect_wbits(self, data: bytes) -> int | None:
        """Return zlib's wbits by the first bytes, or None if they do not match the encoding."""
        if data[:2] == b"\x1f\x8b":
            return _GZIP_WBITS
        if self.encoding != "deflate":
            return None
        return _ZLIB_WBITS if data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0 else _RAW_WBITS

    def _inflate(self, data: bytes) -> bool:
        while data and self._decoder is not None:
            max_output = 65536 if self.limit < 0 else min(65536, self.limit - self.size + 1)
            snapshot = self._decoder.copy()
            try:
                out = self._decoder.decompress(data, max_output)
            except zlib.error:
                self._finished = True
                return self._salvage(snapshot, data)
            if not self._append(out):
                return False
            if self._decoder.eof:
                data = self._decoder.unused_data
                if data[:2] != b"\x1f\x8b":  # padding, not another gzip member
                    self._finished = True
                    return True
                self._decoder = zlib.decompressobj(_GZIP_WBITS)
                continue
            data = self._decoder.unconsumed_tail
        return True

    def _decode_in_pieces(self, data: bytes) -> bool:
        """Decode brotli or zstd; invalid data at the start means a wrong encoding, later the end."""
        if self._decoder is None:
            self._decoder = _BrotliDecoder() if self.encoding == "br" else _ZstdDecoder()
        try:
            for out in self._decoder.iter_decoded(data):
                if not self._append(out):
                    return False
        except ValueError:
            self._finished = True
            if not self.size:
                self.encoding, self._finished = "", False
                return self._append(data)
        return True

    def _salvage(self, inflater: Any, data: bytes) -> bool:
        """Keep the output of the bytes before the one that breaks the stream."""
        with suppress(zlib.error):
            for position in range(len(data)):
                if not self._append(inflater.decompress(data[position : position + 1])):
                    return False
        return True

    def _append(self, data: bytes) -> bool:
        if 0 <= self.limit < self.size + len(data):
            data = data[: self.limit - self.size]
            self.truncated = True
        self._buffer += data
        self.size += len(data)
        return not self.truncated

    def content(self) -> bytes:
        """Return the content kept so far."""
        if self._pending:
            self._append(self._pending)
            self._pending = b""
        return bytes(self._buffer)


class _BrotliDecoder:
    """Brotli decoder with bounded output chunks; raises ValueError for invalid data."""

    def __init__(self) -> None:
        import brotli

        self._error = brotli.error
        self._decoder = brotli.Decompressor()

    def iter_decoded(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded chunks."""
        try:
            while not self._decoder.is_finished():
                out = self._decoder.process(data, output_buffer_limit=65536)
                if not out and self._decoder.can_accept_more_data():
                    return
                yield out
                data = b""
        except self._error as error:
            raise ValueError(str(error)) from error


class _ZstdDecoder:
    """Zstandard decoder with bounded output chunks; raises ValueError for invalid data."""

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW).decompressobj()

    def iter_decoded(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded chunks; data after the frame is ignored."""
        try:
            for start in range(0, len(data), _ZSTD_SLICE_BYTES):
                if self._decoder.eof:
                    return
                yield self._decoder.decompress(data[start : start + _ZSTD_SLICE_BYTES])
        except self._error as error:
            raise ValueError(str(error)) from error


def parse_content_encoding(value: str | None) -> str:
    """Return ``gzip``, ``deflate``, ``br``, ``zstd`` or "" (no decoding) for a ``Content-Encoding`` header."""
    token = (value or "").strip().lower()
    if token in ("gzip", "x-gzip"):
        return "gzip"
    return token if token in ("deflate", "br", "zstd") else ""
