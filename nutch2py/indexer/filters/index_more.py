"""index-more: lastModified, date, contentLength, type, and a title from a download's file name."""

from __future__ import annotations

import re

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_dates import format_solr_date, parse_date
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.interfaces import IndexingFilter
from nutch2py.parser.mime.mime_types import get_mime_resolver
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import warn

_FILENAME_PATTERNS = (
    re.compile(r"\bfilename=['\"](.+?)['\"]", re.IGNORECASE),
    re.compile(r"\bfilename=(\S+)\b", re.IGNORECASE),
)


def split_mime_type(mime_type: str) -> list[str]:
    """Return the type and the subtype of a MIME type.

    >>> split_mime_type("text/html")
    ['text', 'html']
    """
    return mime_type.split("/")


def response_header(page: WebPage, name: str) -> str | None:
    """Return a response header; names are case-insensitive."""
    exact: str | None = page.headers.get(name)
    if exact is not None:
        return exact
    lower = name.lower()
    return next((value for key, value in page.headers.decoded_items() if key.lower() == lower), None)


class MoreIndexingFilter(IndexingFilter):
    """Adds fields from the response headers.

    ``lastModified``: that header. ``date``: the same, else the page's modified time, else its fetch time (Nutch 2
    writes 1970 there). ``contentLength``. ``type``: the MIME type, and its two parts with
    ``moreIndexingFilter.indexMimeTypeParts``. With ``moreIndexingFilter.mapMimeTypes`` the type in
    contenttype-mapping.txt replaces it, or is added as ``moreIndexingFilter.mapMimeTypes.field``. The file name in
    Content-Disposition is the title of a page without one, as in Nutch 1 (Nutch 2 adds it as a second title).
    """

    java_class = "org.apache.nutch.indexer.more.MoreIndexingFilter"
    fields = frozenset(
        {
            WebPage.headers,
            WebPage.content_type,
            WebPage.modified_time,
            WebPage.fetch_time,
            WebPage.prev_fetch_time,
            WebPage.fetch_interval,
            WebPage.markers,
        }
    )

    def __init__(self, conf: Configuration) -> None:
        self.index_type_parts = conf.get_bool("moreIndexingFilter.indexMimeTypeParts", True)
        self.mime_types = get_mime_resolver(conf)
        self.type_mapping = _read_type_mapping(conf) if conf.get_bool("moreIndexingFilter.mapMimeTypes", False) else {}
        self.mapped_field = conf.get_trimmed("moreIndexingFilter.mapMimeTypes.field")

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add lastModified, date, contentLength and type, and a title if there is none."""
        self._add_times(document, url, page)
        length = (response_header(page, "Content-Length") or "").strip()
        if length:
            document.add("contentLength", length)
        content_type = page.content_type
        mime_type = self.canonical_type(
            response_header(page, "Content-Type") if content_type is None else content_type, url
        )
        if mime_type is not None:
            self._add_type(document, mime_type)
        if "title" not in document:
            title = disposition_filename(response_header(page, "Content-Disposition") or "")
            if title:
                document.add("title", title)
        return document

    def canonical_type(self, content_type: str | None, url: str) -> str | None:
        """Return the canonical MIME type without parameters, None when ``content_type`` is invalid.

        A page without ``content_type`` gets the type of its URL's extension.
        """
        if content_type is None:
            return self.mime_types.type_by_url(url)
        return self.mime_types.table.canonical_name(content_type.partition(";")[0])

    def _add_type(self, document: NutchDocument, mime_type: str) -> None:
        mapped = self.type_mapping.get(mime_type)
        if mapped is not None and self.mapped_field:
            document.add(self.mapped_field, mapped)
        elif mapped is not None:
            mime_type = mapped
        document.add("type", mime_type)
        if self.index_type_parts:
            for part in split_mime_type(mime_type):
                if part != mime_type:  # a mapped type such as "web page" has no parts
                    document.add("type", part)

    def _add_times(self, document: NutchDocument, url: str, page: WebPage) -> None:
        header = response_header(page, "Last-Modified")
        modified = parse_date(header) if header is not None else None
        if modified is not None:
            document.add("lastModified", format_solr_date(modified))
        elif header is not None:
            warn(f"{url}: Last-Modified {header[:80]!r} is not a date: skipping the field")
        time = modified if modified is not None else page.modified_time
        document.add("date", format_solr_date(time if time > 0 else page_fetch_time(page)))


def _read_type_mapping(conf: Configuration) -> dict[str, str]:
    """Read contenttype-mapping.txt of Nutch 1: lines of a target type and its source types, separated by tabs."""
    mapping: dict[str, str] = {}
    for line in (conf.resource_text("contenttype-mapping.txt") or "").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        target, *sources = (part.strip() for part in line.strip().split("\t"))
        if not sources:
            warn(f"contenttype-mapping.txt: skipping {line!r}: write TYPE<tab>TYPE[<tab>TYPE...]")
        mapping.update(dict.fromkeys(sources, target))
    return mapping


def disposition_filename(disposition: str) -> str | None:
    """Return the file name in a Content-Disposition header."""
    return next((match[1] for pattern in _FILENAME_PATTERNS if (match := pattern.search(disposition))), None)
