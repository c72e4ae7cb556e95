"""Decompress gzip files of one or more members (RFC 1952, section 2.2)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

_CHUNK_BYTES = 65_536


def gunzip(content: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed content, at most ``max_bytes``; raise zlib.error when the first member is invalid.

    Trailing data after the last member is ignored, as gunzip does with a warning.
    """
    decompress = gzip_decompressor()
    for start in range(0, len(content), _CHUNK_BYTES):
        data = decompress(content[start : start + _CHUNK_BYTES], max_bytes)
        max_bytes -= len(data)
        yield data
        if max_bytes <= 0:
            return


def gzip_decompressor() -> Callable[..., bytes]:
    """Return a function that decompresses consecutive chunks, each to at most its second argument (0: no limit)."""
    current = zlib.decompressobj(wbits=31)
    complete = False  # whether a member has ended: any data may follow

    def decompress(piece: bytes, max_bytes: int = 0) -> bytes:
        nonlocal current, complete
        unpacked = []
        while piece:
            try:
                data = current.decompress(piece, max_bytes)
            except zlib.error:
                if not complete:
                    raise
                break
            unpacked.append(data)
            if max_bytes and (max_bytes := max_bytes - len(data)) <= 0:
                break
            if not current.eof:
                break
            complete, piece = True, current.unused_data
            current = zlib.decompressobj(wbits=31)
        return b"".join(unpacked)

    return decompress
