"""Converts ``LIST`` output of FTP servers to an HTML page of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from nutch2py.fetcher.protocols.local_files import DirectoryEntry, render_directory

# -rw-r--r--   1 owner group      1024 Jan 01 12:00 name      and      01-02-20  03:04PM   <DIR>   name
_UNIX_LINE = re.compile(r"([-dl])[-rwxsStT]{9}\S*\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\d+\s+[\d:]+ (.+)")
_DOS_LINE = re.compile(r"\d\d-\d\d-\d\d(?:\d\d)?\s+\d\d:\d\d(?:\s*+(?:AM|PM))?+\s+(<DIR>|\d+)\s+(.+)", re.IGNORECASE)


def parse_ftp_listing(text: str) -> Iterator[DirectoryEntry]:
    """Yield the entries of a Unix or DOS listing; a symbolic link counts as a file."""
    for line in text.splitlines():
        if unix := _UNIX_LINE.match(line):
            kind, size, name = unix.groups()
            name = name.partition(" -> ")[0] if kind == "l" else name
            entry = DirectoryEntry(name, kind == "d", None, int(size))
        elif dos := _DOS_LINE.match(line):
            size, name = dos.groups()
            entry = DirectoryEntry(name, not size.isdigit(), None, int(size) if size.isdigit() else None)
        else:
            continue
        if entry.name not in (".", "..") and "/" not in entry.name:
            yield entry


def render_ftp_listing(path: str, content: bytes, link_parent: bool) -> bytes:
    """Return the HTML page of a directory on an FTP server."""
    text = content.decode("utf-8", "surrogateescape")
    return render_directory(unquote(path), sorted(parse_ftp_listing(text)), link_parent and path != "/")
