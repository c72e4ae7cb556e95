"""Compression of large cells of the derived table."""

from __future__ import annotations


def compress_cell(data: bytes) -> bytes:
    """Return ``data`` compressed for a cell.

    The compressor's buffer has room for the worst case. The result is a copy that uses only as much memory as it
    counts in a write buffer.
    """
    import zstandard

    return bytes(memoryview(zstandard.compress(data, 1)))


def decompress_cell(data: bytes) -> bytes:
    """Return the bytes that :func:`compress_cell` compressed."""
    import zstandard

    return zstandard.decompress(data)
