"""CDXJ: the sorted index of WARC files, plain or as blocks of gzip with an index of their own (ZipNum).

The order is that of bytes. Lines are sorted on disk, so memory does not depend on their number.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

import orjson

from nutch2py.url.java_url import parse_url

RUN_BYTES = 16 << 20
"""Bytes of lines that are sorted in memory."""
BLOCK_LINES = 300
"""Lines of a compressed block."""
_WWW = re.compile(r"^www\d*\.")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"


def to_urlkey(url: str) -> str:
    """Return the key of a URL in an index: host reversed without www, in lower case, parameters sorted.

    It is the key of pywb for common URLs. A URL that cannot be parsed is its own key.

    >>> to_urlkey("https://www.example.org/A/?b=2&a=1")
    'org,example)/a?a=1&b=2'
    """
    try:
        parsed = parse_url(url)
    except ValueError:
        return _to_key_part(url) or "-"
    host = _WWW.sub("", parsed.host.lower().rstrip("."))
    if not host:
        return _to_key_part(url) or "-"
    key = host if host[0] == "[" else ",".join(reversed(host.split(".")))
    if parsed.port not in (-1, _DEFAULT_PORTS.get(parsed.protocol)):
        key += f":{parsed.port}"
    path, _, query = parsed.file.partition("?")
    path = _to_key_part(_remove_dot_segments(path))
    if len(path) > 1:
        path = path.removesuffix("/")
    query = "&".join(sorted(_to_key_part(query).split("&"))) if query else ""
    return f"{_to_key_part(key)}){path or '/'}" + (f"?{query}" if query else "")


def _remove_dot_segments(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return "/" + "/".join(parts) + ("/" if path.endswith("/") and parts else "")


def _to_key_part(text: str) -> str:
    """Return text in lower case with the escapes that it needs, and no others."""
    data = text.encode("utf-8", "replace")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return quote(data.lower(), safe=_SAFE).lower()


class LineSorter:
    """Sorts lines by their bytes. Must be closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: list[Path] = []
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        """Add a line, which ends in a line feed."""
        self._lines.append(line)
        self._size += len(line) + 50
        if self._size >= RUN_BYTES:
            self._lines.sort()
            path = self._folder / f"index-{len(self._runs)}"
            with path.open("wb") as file:
                file.writelines(self._lines)
            self._runs.append(path)
            self._lines, self._size = [], 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines in order."""
        self._lines.sort()
        with ExitStack() as files:
            runs = [files.enter_context(path.open("rb")) for path in self._runs]
            yield from heapq.merge(*runs, self._lines)

    def close(self) -> None:
        """Delete the temporary files."""
        for path in self._runs:
            path.unlink(missing_ok=True)


def write_blocks(lines: Iterator[bytes], write: Callable[[bytes], None], file_name: str) -> bytes:
    """Write lines as blocks of gzip; return the index of the blocks (``.idx``).

    Args:
        lines: Sorted lines of CDXJ.
        write: Writes to the file of blocks.
        file_name: Its name.
    """
    head = {"format": "cdxj-gzip-1.0", "filename": file_name}
    index = [b"!meta 0 " + orjson.dumps(head) + b"\n"]
    block: list[bytes] = []
    offset = 0

    def flush() -> None:
        nonlocal offset
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        packed = packer.compress(b"".join(block)) + packer.flush()
        write(packed)
        about = {
            "offset": offset, "length": len(packed), "digest": f"sha256:{sha256(packed).hexdigest()}",
            "filename": file_name,
        }  # fmt: skip
        index.append(block[0].partition(b" {")[0] + b" " + orjson.dumps(about) + b"\n")
        offset += len(packed)
        block.clear()

    for line in lines:
        block.append(line)
        if len(block) >= BLOCK_LINES:
            flush()
    if block:
        flush()
    return b"".join(index)
