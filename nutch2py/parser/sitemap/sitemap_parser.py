"""Parses sitemaps (sitemaps.org): XML, an index of sitemaps, a feed, or a list of URLs; all may be gzipped."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import mktime_tz, parsedate_tz
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.parser.gzip_decoder import gunzip
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.parser.xml_sanitizer import sanitize_xml

if TYPE_CHECKING:
    from lxml.etree import XMLPullParser

MAX_SITEMAP_URLS = 50_000  # per sitemap, by the protocol
MAX_SITEMAP_BYTES = 50 * 1024 * 1024
DEFAULT_PRIORITY = 0.5
FEED_BYTES = 65_536
"""Bytes per call of the XML parser."""

# W3C date and time: a year, then optional finer parts; UTC when there is no zone
_W3C_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?", re.IGNORECASE
)
_FREQUENCIES = frozenset({"ALWAYS", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY", "NEVER"})
_ENTRY_TAGS = frozenset({"url", "sitemap", "item", "entry"})
_ENTRY_CHILD_TAGS = frozenset(
    {"loc", "link", "guid", "lastmod", "updated", "published", "pubDate", "changefreq", "priority"}
)
_NON_LIST_TAGS = frozenset({*_ENTRY_CHILD_TAGS, "image"})  # an element called url within these is not an entry
_EXTENSION_NAMESPACES = (
    ("1999/xhtml", "alternate"), ("sitemap-news", "news"), ("sitemap-image", "image"), ("sitemap-video", "video"),
)  # fmt: skip
_MAX_EXTENSION_VALUES, _MAX_EXTENSION_CHARS, _MAX_DATE_CHARS = 100, 2000, 64


class SitemapEntry(NamedTuple):
    """One listed URL.

    Attributes:
        url: The URL.
        last_modified: Milliseconds since 1970, or None.
        change_frequency: In upper case, or None.
        priority: From 0 to 1.
        extensions: Other data by name (``alternate`` with lines of a language and a URL, ``news.title``, ``image.loc``,
            ``video.title`` …); several values are separated by line feeds.
    """

    url: str
    last_modified: int | None = None
    change_frequency: str | None = None
    priority: float = DEFAULT_PRIORITY
    extensions: Mapping[str, str] = MappingProxyType({})


class Sitemap(NamedTuple):
    """The entries of a sitemap: pages, or other sitemaps when ``is_index``."""

    is_index: bool
    entries: list[SitemapEntry]


def parse_sitemap(
    body: bytes,
    *,
    max_bytes: int = MAX_SITEMAP_BYTES,
    max_urls: int = MAX_SITEMAP_URLS,
    max_url_length: int = MAX_SITEMAP_BYTES,
) -> Sitemap:
    """Read the first ``max_urls`` entries of a sitemap.

    Skips entries whose URL has more than ``max_url_length`` characters. Malformed XML is read as far as possible.
    External entities and document types are not loaded, and gzip is decompressed up to ``max_bytes``.

    Raises:
        ValueError: The content is not a sitemap.
    """
    if body[:2] == b"\x1f\x8b":
        body = _gunzip(body, max_bytes)
    body = body[:max_bytes]
    if decode_unlabeled(body[:1024]).lstrip().startswith("<"):
        return _read_xml(body, max_urls, max_url_length)
    lines = (line.strip() for line in decode_unlabeled(body).splitlines())
    urls = [line for line in lines if line.startswith(("http://", "https://"))]
    if not urls:
        raise ValueError("neither XML nor a list of URLs")
    return Sitemap(False, [SitemapEntry(url) for url in urls if len(url) <= max_url_length][:max_urls])


def parse_w3c_time(text: str) -> int | None:
    """Return a W3C date, with or without a time, in ms since 1970; None when it is malformed.

    >>> parse_w3c_time("2020-08-02T10:00:00+00:00"), parse_w3c_time("2020-08"), parse_w3c_time("yesterday")
    (1596362400000, 1596240000000, None)
    """
    match = _W3C_DATE.fullmatch(text.strip())
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
        return b"".join(gunzip(body, max_bytes))
    except (zlib.error, EOFError) as error:
        raise ValueError(f"not gzip: {error}") from None


class _EntryBuilder:
    """Collects the data of an entry element."""

    def __init__(self, element: object) -> None:
        self.element = element
        self.parts: dict[str, str] = {}
        self.extensions: dict[str, list[str]] = {}

    def add_child(self, name: str, element: Any) -> None:
        """Add a child element's text."""
        text = "".join(element.itertext()).strip()
        if name == "link" and element.get("href") is not None:
            if element.get("rel", "alternate") == "alternate":  # Atom's other relations are not for readers
                self.parts.setdefault("link", element.get("href").strip())
        elif text:
            self.parts.setdefault(name, text)

    def add_extension(self, name: str, text: str) -> None:
        """Add an extension's value, up to the limits."""
        values = self.extensions.setdefault(name, [])
        if text and len(values) < _MAX_EXTENSION_VALUES and len(self.extensions) <= _MAX_EXTENSION_VALUES:
            values.append(text[:_MAX_EXTENSION_CHARS])


def _read_xml(body: bytes, max_urls: int, max_length: int) -> Sitemap:
    from lxml import etree

    pull = etree.XMLPullParser(
        events=("start", "end"), recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    root = ""
    entries: list[SitemapEntry] = []
    opened: list[_EntryBuilder] = []

    def close(entry: _EntryBuilder) -> None:
        closed = _build_entry(entry)
        if closed is not None and len(closed.url) <= max_length:
            entries.append(closed)

    for event, element in _read_events(pull, sanitize_xml(body)):
        name, parent = _local_name(element.tag), element.getparent()
        within = _local_name(parent.tag) if parent is not None else ""
        if event == "start":
            root = root or name
            if name in _ENTRY_TAGS and within not in _NON_LIST_TAGS:
                opened.append(_EntryBuilder(element))
            continue
        if within in _ENTRY_CHILD_TAGS:  # a URL in a nested element: its text is read with the parent's
            continue
        # compare by identity: an element that libxml2 closes itself may end elsewhere than it started
        if any(entry.element is element for entry in opened):
            while (entry := opened.pop()).element is not element:
                close(entry)
            if "loc" not in entry.parts and "link" not in entry.parts:
                entry.add_child("loc", element)  # an index whose entries contain only text
            close(entry)
            if len(entries) >= max_urls:
                break
        elif opened:
            kind = _extension_of(element.tag)
            if kind:
                _add_extension(opened[-1], kind, name, element)
            elif name in _ENTRY_CHILD_TAGS and within in _ENTRY_TAGS:
                if name == "loc" and "loc" in opened[-1].parts:  # two locations in one entry: each counts
                    close(entry := opened.pop())
                    opened.append(_EntryBuilder(entry.element))
                opened[-1].add_child(name, element)
        free_element(element)
    if root not in ("urlset", "sitemapindex", "rss", "feed", "RDF"):
        raise ValueError(f"the root element is {root or 'missing'}, not urlset, sitemapindex or that of a feed")
    return Sitemap(root == "sitemapindex", entries)


def _extension_of(tag: str) -> str:
    """Return the extension that an element belongs to, "" for none."""
    namespace = tag.rpartition("}")[0] if isinstance(tag, str) else ""
    return next((kind for part, kind in _EXTENSION_NAMESPACES if part in namespace), "")


def _add_extension(entry: _EntryBuilder, kind: str, name: str, element: Any) -> None:
    if kind == "alternate":
        if name == "link" and element.get("href") and element.get("hreflang"):
            entry.add_extension("alternate", f"{element.get('hreflang').strip()} {element.get('href').strip()}")
    elif not len(element) and element.text:
        entry.add_extension(f"{kind}.{name}", " ".join(element.text.split()))


def _read_events(pull: XMLPullParser[Any], body: bytes) -> Iterator[tuple[str, Any]]:
    """Feed a parser in chunks, so that the tree is never complete, and yield start and end events."""
    for start in range(0, len(body), FEED_BYTES):
        pull.feed(body[start : start + FEED_BYTES])
        yield from pull.read_events()
    try:
        pull.close()
    except SyntaxError as error:
        raise ValueError(f"not XML: {error}") from None
    yield from pull.read_events()


def free_element(element: Any) -> None:
    """Free an element's content and its preceding siblings: as a tree, 50 MiB of a sitemap would take 2 GB."""
    element.clear()
    parent = element.getparent()
    while parent is not None and parent[0] is not element:
        del parent[0]


def _local_name(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _build_entry(entry: _EntryBuilder) -> SitemapEntry | None:
    parts = entry.parts
    guid = parts.get("guid", "")
    url = parts.get("loc") or parts.get("link") or (guid if guid.startswith(("http://", "https://")) else "")
    if not url:
        return None
    time = parse_w3c_time(parts.get("lastmod") or parts.get("updated") or parts.get("published") or "")
    if time is None and "pubDate" in parts:
        time = _parse_rfc822_time(parts["pubDate"])
    frequency = parts.get("changefreq", "").upper()
    try:
        priority = float(parts.get("priority") or DEFAULT_PRIORITY)
    except ValueError:
        priority = DEFAULT_PRIORITY
    if not 0.0 <= priority <= 1.0:
        priority = DEFAULT_PRIORITY
    extensions = {name: "\n".join(values) for name, values in entry.extensions.items() if values}
    return SitemapEntry(
        clean_reference(url), time, frequency if frequency in _FREQUENCIES else None, priority, extensions
    )


def _parse_rfc822_time(text: str) -> int | None:
    """Return an RFC 822 date, as in feeds, in ms since 1970; None when it is malformed or has no zone."""
    parts = parsedate_tz(text[:_MAX_DATE_CHARS])
    if parts is None or parts[9] is None or text.rsplit(maxsplit=1)[-1].count(":"):
        return None
    try:
        return mktime_tz(parts) * 1000
    except (ValueError, OverflowError):
        return None
