"""Sitemaps (sitemaps.org): XML, an index of sitemaps, a feed, or a list of URLs; any of them gzipped."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.parser.xml_entities import settled

if TYPE_CHECKING:
    from lxml.etree import XMLPullParser

MAX_URLS = 50_000  # of one sitemap, by the protocol
MAX_BYTES = 50 * 1024 * 1024
DEFAULT_PRIORITY = 0.5
_PIECE = 65_536  # bytes given to the XML parser at a time

# W3C date and time: a year, then each finer part if the coarser is there; without a zone it is UTC
_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?", re.IGNORECASE
)
_FREQUENCIES = frozenset({"ALWAYS", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY", "NEVER"})
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_PARTS = frozenset({"loc", "link", "lastmod", "updated", "changefreq", "priority"})


class SitemapEntry(NamedTuple):
    """One listed URL. ``last_modified`` (ms since 1970) and ``change_frequency`` (upper case) are None when untold."""

    url: str
    last_modified: int | None = None
    change_frequency: str | None = None
    priority: float = DEFAULT_PRIORITY


class Sitemap(NamedTuple):
    """What a sitemap lists: pages, or other sitemaps when ``is_index``."""

    is_index: bool
    entries: list[SitemapEntry]


def parse_sitemap(
    body: bytes, *, max_bytes: int = MAX_BYTES, max_urls: int = MAX_URLS, max_length: int = MAX_BYTES
) -> Sitemap:
    """Read the first ``max_urls`` entries of a sitemap; raise ValueError when it is none.

    Entries whose URL has more than ``max_length`` characters are left out. Broken XML is read as far as it goes.
    Neither external entities nor a document type are loaded, and a gzipped sitemap is unpacked up to ``max_bytes``
    only.
    """
    if body[:2] == b"\x1f\x8b":
        body = _gunzip(body, max_bytes)
    body = body[:max_bytes]
    head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"<") or body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _read_xml(body, max_urls, max_length)
    lines = (line.strip() for line in body.decode("utf-8-sig", "replace").splitlines())
    urls = [line for line in lines if line.startswith(("http://", "https://"))]
    if not urls:
        raise ValueError("neither XML nor a list of URLs")
    return Sitemap(False, [SitemapEntry(url) for url in urls if len(url) <= max_length][:max_urls])


def parse_w3c_time(text: str) -> int | None:
    """Return a W3C date, with or without a time, in ms since 1970; None when it is malformed.

    >>> parse_w3c_time("2020-08-02T10:00:00+00:00"), parse_w3c_time("2020-08"), parse_w3c_time("yesterday")
    (1596362400000, 1596240000000, None)
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, zone = match.groups()
    offset = timedelta()
    if zone and zone not in "Zz":
        digits = zone[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if zone[0] == "-" else 1)
    try:
        moment = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
            tzinfo=timezone(offset) if offset else UTC,
        )  # fmt: skip
    except ValueError:
        return None
    return int(moment.timestamp()) * 1000


def _gunzip(body: bytes, max_bytes: int) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(body, max_bytes)
    except zlib.error as error:
        raise ValueError(f"not gzip: {error}") from None


def _read_xml(body: bytes, max_urls: int, max_length: int) -> Sitemap:
    from lxml import etree

    pull = etree.XMLPullParser(
        events=("start", "end"), recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    root = ""
    entries: list[SitemapEntry] = []
    opened: list[dict[str, str]] = []  # what the entries say that are open
    for event, element in _events(pull, settled(body)):
        name = _local(element.tag)
        if event == "start":
            root = root or name
            if name in _ENTRIES:
                opened.append({})
            continue
        if name in _ENTRIES:
            entry = _entry(opened.pop())
            if entry is not None and len(entry.url) <= max_length:
                entries.append(entry)
            if len(entries) >= max_urls:
                break
        elif name in _PARTS and opened and _local(element.getparent().tag) in _ENTRIES:
            opened[-1][name] = (element.text or element.get("href") or "").strip()
        _forget(element)
    if root not in ("urlset", "sitemapindex", "rss", "feed", "RDF"):
        raise ValueError(f"the root element is {root or 'missing'}, not urlset, sitemapindex or that of a feed")
    return Sitemap(root == "sitemapindex", entries)


def _events(pull: XMLPullParser[Any], body: bytes) -> Iterator[tuple[str, Any]]:
    """Feed a parser piece by piece, so that the tree never holds all, and give the elements as they begin and end."""
    for start in range(0, len(body), _PIECE):
        pull.feed(body[start : start + _PIECE])
        yield from pull.read_events()
    try:
        pull.close()
    except SyntaxError as error:
        raise ValueError(f"not XML: {error}") from None
    yield from pull.read_events()


def _forget(element: Any) -> None:
    """Let go of what an element holds and of what is before it: 50 MiB of a sitemap would take 2 GB as a tree."""
    element.clear()
    parent = element.getparent()
    while parent is not None and parent[0] is not element:
        del parent[0]


def _local(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _entry(parts: dict[str, str]) -> SitemapEntry | None:
    url = parts.get("loc") or parts.get("link") or ""
    if not url:
        return None
    time = parse_w3c_time(parts.get("lastmod") or parts.get("updated") or "")
    frequency = parts.get("changefreq", "").upper()
    try:
        priority = float(parts.get("priority") or DEFAULT_PRIORITY)
    except ValueError:
        priority = DEFAULT_PRIORITY
    if not 0.0 <= priority <= 1.0:
        priority = DEFAULT_PRIORITY
    return SitemapEntry(url, time, frequency if frequency in _FREQUENCIES else None, priority)
