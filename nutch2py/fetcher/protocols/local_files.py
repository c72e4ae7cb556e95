"""``file:`` URLs, answered as a web server would, and the pages that folders become (Nutch's protocol-file).

Only with protocol-file in ``plugin.includes``: a page of the web that names ``file:`` URLs could else have any file
that the crawler may read stored and indexed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.support.http_date import format_http_date
from nutch2py.url.java_url import parse_url


class DirectoryEntry(NamedTuple):
    """What a folder holds; ``modified``: ms since 1970, or None; ``size``: bytes, or None."""

    name: str
    is_dir: bool
    modified: int | None = None
    size: int | None = None


def render_directory(path: str, entries: Iterable[DirectoryEntry], link_parent: bool) -> bytes:
    """Return the HTML page of a folder, with a link to its parent if wanted."""
    title = escape(f"Index of {path}")
    lines = [f"<html><head><title>{title}</title></head>", f"<body><h1>{title}</h1><pre>"]
    if link_parent:
        lines.append("<a href='../'>../</a>\t-\t-\t-")
    for entry in entries:
        name = entry.name + ("/" if entry.is_dir else "")
        date = "-" if entry.modified is None else format_http_date(entry.modified)
        size = "-" if entry.size is None or entry.is_dir else entry.size
        link = quote(os.fsencode(name), safe="/~-._")
        text = escape(os.fsencode(name).decode("utf-8", "replace"))
        lines.append(f"<a href='./{link}'>{text}</a>\t{date}\t{size}")
    return "\n".join([*lines, "</pre></body></html>", ""]).encode()


@dataclass(frozen=True, slots=True)
class LocalFileReader:
    """Reads files. ``content_limit``: bytes to keep of one, -1 for all."""

    content_limit: int
    link_parent: bool
    redirect_noncanonical: bool

    @classmethod
    def from_conf(cls, conf: Configuration) -> LocalFileReader:
        """Read the properties ``file.*``."""
        return cls(
            conf.get_int("file.content.limit", 65536),
            conf.get_bool("file.crawl.parent", True),
            conf.get_bool("file.crawl.redirect_noncanonical", True),
        )

    def read(self, url: str, modified_time: int = 0) -> FetchResponse:
        """Answer a ``file:`` URL; ``modified_time``: ms, of the copy at hand, 0 for none. Never raises.

        404: no such file; 401: it may not be read; 300: the path is not canonical (a symbolic link in it, or a folder
        without its slash) and ``redirect`` is set; 304: no younger than the copy; 500: neither file nor folder.
        """
        started = time.monotonic()
        try:
            answer = self._read(url, modified_time)
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            answer = FetchResponse(url, failure=FetchFailure(FailureKind.OTHER, text))
        answer.elapsed_ms = int((time.monotonic() - started) * 1000)
        return answer

    def _read(self, url: str, modified_time: int) -> FetchResponse:
        given = os.fsdecode(unquote_to_bytes(parse_url(url).file.partition("?")[0])) or "/"
        if "\0" in given:
            return FetchResponse(url, 404)
        path = os.path.realpath(given)
        try:
            found = Path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return FetchResponse(url, 404)
        except PermissionError:
            return FetchResponse(url, 401)
        folder = stat.S_ISDIR(found.st_mode)
        canonical = path.rstrip("/") + "/" if folder else path
        if given != canonical and self.redirect_noncanonical:
            return FetchResponse(url, 300, [b"Location: file:" + quote(os.fsencode(canonical), safe="/~-._").encode()])
        modified = int(found.st_mtime * 1000)
        lines = [f"Last-Modified: {format_http_date(modified)}".encode()]
        if modified_time and modified // 1000 <= modified_time // 1000:
            return FetchResponse(url, 304, lines)
        if not os.access(path, os.R_OK):
            return FetchResponse(url, 401)
        if folder:
            content = render_directory(path, self._list_entries(path), self.link_parent and path != "/")
            lines.append(b"Content-Type: text/html; charset=utf-8")
            size = len(content)
        elif stat.S_ISREG(found.st_mode):
            with Path(path).open("rb") as file:
                content = file.read(self.content_limit if self.content_limit >= 0 else -1)
            size = found.st_size
        else:
            return FetchResponse(url, 500)
        truncated = "length" if not folder and len(content) < size else ""
        return FetchResponse(url, 200, [*lines, b"Content-Length: %d" % size], content, truncated)

    @staticmethod
    def _list_entries(path: str) -> list[DirectoryEntry]:
        found = []
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    about = entry.stat()
                except OSError:  # a link to nowhere
                    continue
                folder = stat.S_ISDIR(about.st_mode)
                if folder or stat.S_ISREG(about.st_mode):
                    found.append(DirectoryEntry(entry.name, folder, int(about.st_mtime * 1000), about.st_size))
        return sorted(found)
