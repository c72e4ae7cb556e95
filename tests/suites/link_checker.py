"""An independent link checker: finds the reachable pages of a site with another HTML parser than the program's.

libxml2 reads the pages, and Python's ``urljoin`` (RFC 3986) the links; nothing of the program is used.
"""

from __future__ import annotations

import http.client
from typing import NamedTuple
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from lxml import html

_LINKS = "//a/@href | //area/@href | //link/@href | //frame/@src | //iframe/@src"
_PAGES = ("text/html", "application/xhtml+xml")
_ESCAPED = "/?=&%;~!$'()*+,:@"
"""Characters that stay unescaped in a request path."""


class Page(NamedTuple):
    """A page that a server has: its title in one line, and where its links lead to on the same site."""

    title: str
    links: frozenset[str]


def check(address: str, seeds: tuple[str, ...], passed_over: tuple[str, ...]) -> tuple[dict[str, Page], set[str]]:
    """Return the pages of a site that can be reached from seeds, by path, and the paths where nothing is.

    ``address``: of the server, ``seeds``: paths there. A path keeps its query, and has no escapes. What ends in one of
    ``passed_over`` is not visited.
    """
    at = address.rstrip("/")
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    pages: dict[str, Page] = {}
    broken: set[str] = set()
    known, waiting = set(seeds), list(seeds)
    while waiting:
        path = waiting.pop()
        asked = quote(path, safe=_ESCAPED)
        connection.request("GET", asked)
        answer = connection.getresponse()
        body, kind = answer.read(), answer.headers.get_content_type()
        found: frozenset[str] = frozenset()
        if answer.status in (301, 302):
            found = _on_site(address, [urljoin(at + asked, answer.headers["Location"])])
        elif answer.status != 200:
            broken.add(path)
        elif kind in _PAGES or body[:500].lstrip().lower().startswith((b"<!doctype html", b"<html")):
            pages[path] = _read(address, at + asked, body, answer.headers.get_content_charset())
            found = pages[path].links
        new = {each for each in found if not urlsplit(each).path.lower().endswith(passed_over)} - known
        known |= new
        waiting += sorted(new)
    connection.close()
    return pages, broken


def _read(address: str, url: str, body: bytes, charset: str | None) -> Page:
    if charset is None:
        try:
            body.decode()
            charset = "utf-8"
        except UnicodeDecodeError:
            charset = "windows-1252"
    tree = html.document_fromstring(body or b"<html>", parser=html.HTMLParser(encoding=charset))
    base = next(iter(tree.xpath("//base/@href")), None)
    base = url if base is None else urljoin(url, str(base))
    title = next(iter(tree.xpath("//title")), None)
    links = [urljoin(base, str(href).strip()) for href in tree.xpath(_LINKS)]
    return Page("" if title is None else " ".join(title.text_content().split()), _on_site(address, links))


def _on_site(address: str, urls: list[str]) -> frozenset[str]:
    """Return paths, with queries, of the URLs on the server."""
    found = set()
    for url in urls:
        parts = urlsplit(urldefrag(url).url)
        if f"{parts.scheme}://{parts.netloc}/" == address:
            found.add(unquote(parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    return frozenset(found)
