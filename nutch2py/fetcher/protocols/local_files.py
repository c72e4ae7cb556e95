"""``file:`` URLs with the responses of a web server, and HTML pages for directories (Nutch's protocol-file).

Requires protocol-file in ``plugin.includes``: otherwise a web page that links ``file:`` URLs could have any file
readable by the crawler stored and indexed.
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
from nutch2py.fetcher.protocols.local_failures import find_local_failure
from nutch2py.support.http_date import format_http_date
from nutch2py.url.java_url import parse_url


class DirectoryEntry(NamedTuple):
    """An entry of a directory; ``modified``: ms since 1970, or None; ``size``: bytes, or None."""

    name: str
    is_dir: bool
    modified: int | None = None
    size: int | None = None


def render_directory(path: str, entries: Iterable[DirectoryEntry], link_parent: bool) -> bytes:
    """Return the HTML page of a directory, with a link to its parent if ``link_parent``."""
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
    """Reads files; ``content_limit``: bytes to keep, -1 for all."""

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
        """Return the response for a ``file:`` URL; never raises.

        Status 404: file not found; 401: not readable; 300: the path is not canonical (a symbolic link in it, or a
        directory without its slash) and ``redirect_noncanonical`` is set; 304: not modified; 500: neither file nor
        directory.

        Args:
            url: URL of the file.
            modified_time: Time of the stored copy in milliseconds, 0 for none.
        """
        started = time.monotonic()
        try:
            response = self._read(url, modified_time)
        except (OSError, ValueError) as error:
            message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            failure = find_local_failure(error) or FetchFailure(FailureKind.OTHER, message)
            response = FetchResponse(url, failure=failure)
        response.elapsed_ms = int((time.monotonic() - started) * 1000)
        return response

    def _read(self, url: str, modified_time: int) -> FetchResponse:
        requested_path = os.fsdecode(unquote_to_bytes(parse_url(url).file.partition("?")[0])) or "/"
        if "\0" in requested_path:
            return FetchResponse(url, 404)
        path = os.path.realpath(requested_path)
        try:
            info = Path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return FetchResponse(url, 404)
        except PermissionError:
            return FetchResponse(url, 401)
        is_dir = stat.S_ISDIR(info.st_mode)
        canonical_path = path.rstrip("/") + "/" if is_dir else path
        if requested_path != canonical_path and self.redirect_noncanonical:
            return FetchResponse(
                url, 300, [b"Location: file:" + quote(os.fsencode(canonical_path), safe="/~-._").encode()]
            )
        modified = int(info.st_mtime * 1000)
        lines = [f"Last-Modified: {format_http_date(modified)}".encode()]
        if modified_time and modified // 1000 <= modified_time // 1000:
            return FetchResponse(url, 304, lines)
        if not os.access(path, os.R_OK):
            return FetchResponse(url, 401)
        if is_dir:
            content = render_directory(path, self._list_entries(path), self.link_parent and path != "/")
            lines.append(b"Content-Type: text/html; charset=utf-8")
            size = len(content)
        elif stat.S_ISREG(info.st_mode):
            with Path(path).open("rb") as file:
                content = file.read(self.content_limit if self.content_limit >= 0 else -1)
            size = info.st_size
        else:
            return FetchResponse(url, 500)
        truncated = "length" if not is_dir and len(content) < size else ""
        return FetchResponse(url, 200, [*lines, b"Content-Length: %d" % size], content, truncated)

    @staticmethod
    def _list_entries(path: str) -> list[DirectoryEntry]:
        listed = []
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    info = entry.stat()
                except OSError:  # a dangling link
                    continue
                is_dir = stat.S_ISDIR(info.st_mode)
                if is_dir or stat.S_ISREG(info.st_mode):
                    listed.append(DirectoryEntry(entry.name, is_dir, int(info.st_mtime * 1000), info.st_size))
        return sorted(listed)
