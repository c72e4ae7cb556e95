"""Listings of FTP servers, as ``LIST`` gives them, to a page of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from nutch2py.fetcher.local_files import Entry, listing

# -rw-r--r--   1 owner group      1024 Jan 01 12:00 name      and      01-02-20  03:04PM   <DIR>   name
_UNIX = re.compile(r"([-dl])[-rwxsStT]{9}\S*\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\d+\s+[\d:]+ (.+)")
_DOS = re.compile(r"\d\d-\d\d-\d\d(?:\d\d)?\s+\d\d:\d\d(?:\s*+(?:AM|PM))?+\s+(<DIR>|\d+)\s+(.+)", re.IGNORECASE)


def entries_of(text: str) -> Iterator[Entry]:
    """Give the entries of a listing in the form of Unix or of DOS; a link is taken for a file."""
    for line in text.splitlines():
        if unix := _UNIX.match(line):
            kind, size, name = unix.groups()
            name = name.partition(" -> ")[0] if kind == "l" else name
            entry = Entry(name, kind == "d", None, int(size))
        elif dos := _DOS.match(line):
            size, name = dos.groups()
            entry = Entry(name, not size.isdigit(), None, int(size) if size.isdigit() else None)
        else:
            continue
        if entry.name not in (".", "..") and "/" not in entry.name:
            yield entry


def ftp_listing(path: str, content: bytes, parent: bool) -> bytes:
    """Return the HTML page of a folder on an FTP server."""
    text = content.decode("utf-8", "surrogateescape")
    return listing(unquote(path), sorted(entries_of(text)), parent and path != "/")
