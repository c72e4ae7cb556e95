"""The columns of exported pages: names, types and values.

Names are those of Common Crawl's columnar index (github.com/commoncrawl/cc-index-table) where the value is the same;
the others are those of the search index or of Nutch 2's schema in lower case. docs/jobs/export.md lists them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from nutch2py.errors import UsageError
from nutch2py.indexer.document_dates import format_solr_date
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.indexer.filters.index_more import response_header
from nutch2py.jobs.row_output.row_text import parse_status_name, protocol_status_name
from nutch2py.jobs.stats.stats_collector import get_status_name
from nutch2py.parser.filters.language_identifier import LANGUAGE_KEY
from nutch2py.parser.html.main_text import MAIN_TEXT_KEY
from nutch2py.records.cells import decode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, ProtocolStatusCode, WebPage
from nutch2py.support.formatting import valid_utf8
from nutch2py.url.java_url import parse_url
from nutch2py.url.keys import url_or_key
from nutch2py.url.url_parts import domain_of_host, suffix_of_host

_MAX_TIME = 253_402_300_799_999  # ms since 1970: the end of the year 9999
STATUS_VALUES = ("", *(status.name.lower() for status in CrawlStatus))
"""Values of the column ``status``, and "" for none."""
_ON_REQUEST = frozenset({"inlinks", "headers", "markdown", "content"})  # large, or costly
_REDIRECTS = (ProtocolStatusCode.MOVED, ProtocolStatusCode.TEMP_MOVED)
_HTTP_STATUS: dict[int, int] = {
    ProtocolStatusCode.SUCCESS: 200,
    ProtocolStatusCode.MOVED: 301,
    ProtocolStatusCode.TEMP_MOVED: 302,
    ProtocolStatusCode.NOTMODIFIED: 304,
    ProtocolStatusCode.GONE: 400,
    ProtocolStatusCode.ACCESS_DENIED: 401,
    ProtocolStatusCode.NOTFOUND: 404,
}
_QUOTED_STATUS = re.compile("Http(?: code=|: )([1-9][0-9]{2})(?![0-9])")
_TIME_FIELDS: tuple[RecordField, ...] = (
    WebPage.fetch_time,
    WebPage.prev_fetch_time,
    WebPage.fetch_interval,
    WebPage.markers,
)


class ExportedPage(NamedTuple):
    """A row and its address. ``host`` is "" and ``port`` -1 where the URL has none; ``markdown``: the main text."""

    key: str
    url: str
    page: WebPage
    protocol: str
    host: str
    port: int
    path: str
    query: str | None
    markdown: Callable[[], str | None]

    @classmethod
    def from_row(cls, key: str, page: WebPage, markdown: Callable[[], str | None]) -> ExportedPage:
        """Return the exported page of a row; a key that is no URL has no parts."""
        url = url_or_key(key)
        try:
            parsed = parse_url(url)
        except ValueError:
            return cls(key, url, page, "", "", -1, "", None, markdown)
        path, mark, query = parsed.file.partition("?")
        return cls(
            key, url, page, parsed.protocol, parsed.host.lower(), parsed.port, path, query if mark else None, markdown
        )


class Column(NamedTuple):
    """A column of an export.

    Attributes:
        name: Its name.
        type: string, int32, int64, float32, timestamp (ms since 1970, UTC), binary, links (list of url and anchor) or
            headers (list of name and value).
        fields: The fields of a row that it needs.
        value: Its value as JSON: timestamps in ISO 8601, bytes in base64; None when there is none.
        description: One line for the documentation.
    """

    name: str
    type: str
    fields: tuple[RecordField, ...]
    value: Callable[[ExportedPage], object]
    description: str


def format_export_time(milliseconds: int) -> str | None:
    """Return a time in ms since 1970 as ISO 8601 in UTC, None for 0 and for years beyond 9999.

    >>> format_export_time(1795542118123)
    '2026-11-24T17:41:58.123Z'
    """
    return format_solr_date(milliseconds) if 0 < milliseconds <= _MAX_TIME else None


def to_surt(protocol: str, host: str, port: int, path: str, query: str | None) -> str | None:
    """Return a URL as Sort-friendly URI Reordering Transform, the host reversed; None without a host.

    >>> to_surt("http", "www.example.org", -1, "/a", "b=1")
    'org,example,www)/a?b=1'
    """
    if not host:
        return None
    reversed_host = host if host[0] == "[" else ",".join(reversed(host.rstrip(".").split(".")))
    shown_port = "" if port == -1 else f":{port}"
    return f"{reversed_host}{shown_port}){path or '/'}" + ("" if query is None else f"?{query}")


def _text(value: str | None) -> str | None:
    return valid_utf8(value) if value else None


def _metadata_text(page: WebPage, name: str) -> str | None:
    cell = page.metadata.get(name)
    return _text(decode_text(cell)) if cell else None


def _fetch_time(row: ExportedPage) -> str | None:
    is_fetched = row.page.prev_fetch_time or Mark.FETCH in row.page.markers or Mark.UPDATEDB in row.page.markers
    return format_export_time(page_fetch_time(row.page)) if is_fetched else None


def _redirect(row: ExportedPage) -> str | None:
    status = row.page.protocol_status
    return _text(status.args[0]) if status is not None and status.code in _REDIRECTS and status.args else None


def _fetch_status(row: ExportedPage) -> int | None:
    """Return the HTTP status code that a protocol status stands for; messages of the fetcher quote that of errors."""
    status = row.page.protocol_status
    if status is None:
        return None
    if status.code in (ProtocolStatusCode.EXCEPTION, ProtocolStatusCode.GONE):
        quoted = _QUOTED_STATUS.match(status.args[0]) if status.args else None
        if quoted is not None:
            return int(quoted[1])
    return _HTTP_STATUS.get(status.code)


def _depth(row: ExportedPage) -> int | None:
    text = row.page.markers.get(Mark.DISTANCE) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _duplicate_of(row: ExportedPage) -> str | None:
    key = (_metadata_text(row.page, MetadataKey.DUPLICATE) or "").partition(" ")[2]
    return url_or_key(key) if key else None


def _mime_type(value: str | None) -> str | None:
    return _text((value or "").partition(";")[0].strip().lower())


def _links(links: Iterable[tuple[str, str]]) -> list[dict[str, str | None]]:
    return [{"url": _text(url), "anchor": _text(anchor) or ""} for url, anchor in links]


def _headers(row: ExportedPage) -> list[dict[str, str | None]]:
    return [{"name": _text(name), "value": _text(value) or ""} for name, value in row.page.headers.decoded_items()]


def _build_columns() -> list[Column]:
    text, page = "string", WebPage
    return [
        Column("url", text, (), lambda row: _text(row.url), "The URL; the row key of a row without one."),
        Column(
            "url_surtkey",
            text,
            (),
            lambda row: _text(to_surt(row.protocol, row.host, row.port, row.path, row.query)),
            "The URL with its host reversed, which sorts the pages of a domain together.",
        ),
        Column("url_host_name", text, (), lambda row: _text(row.host), "The host, in lower case."),
        Column(
            "url_host_registered_domain",
            text,
            (),
            lambda row: _text(domain_of_host(row.host)) if row.host else None,
            "The registered domain: public suffix and one label.",
        ),
        Column(
            "url_host_tld",
            text,
            (),
            lambda row: _text((suffix_of_host(row.host) or "").rpartition(".")[2]),
            "The last label of the public suffix.",
        ),
        Column("url_protocol", text, (), lambda row: _text(row.protocol), "http, https, file, …"),
        Column(
            "url_port", "int32", (), lambda row: None if row.port == -1 else row.port, "The port, if the URL names one."
        ),
        Column("url_path", text, (), lambda row: _text(row.path), "The path."),
        Column("url_query", text, (), lambda row: _text(row.query), "The query, without its question mark."),
        Column(
            "status",
            text,
            (page.status,),
            lambda row: get_status_name(row.page.status).removeprefix("status_") if row.page.status else None,
            "unfetched, fetched, gone, redir_temp, redir_perm, retry or notmodified; null before the first fetch.",
        ),
        Column("fetch_time", "timestamp", _TIME_FIELDS, _fetch_time, "The last fetch."),
        Column(
            "fetch_interval",
            "int32",
            (page.fetch_interval,),
            lambda row: row.page.fetch_interval,
            "Seconds between two fetches.",
        ),
        Column(
            "fetch_status",
            "int32",
            (page.protocol_status,),
            _fetch_status,
            "HTTP status code of the last fetch; 301 and 302 stand for every permanent and temporary redirect.",
        ),
        Column("fetch_redirect", text, (page.protocol_status,), _redirect, "The target of a redirect."),
        Column(
            "modified_time",
            "timestamp",
            (page.modified_time,),
            lambda row: format_export_time(row.page.modified_time),
            "When the page changed last.",
        ),
        Column(
            "retries",
            "int32",
            (page.retries_since_fetch,),
            lambda row: row.page.retries_since_fetch,
            "Failed fetches since the last success.",
        ),
        Column(
            "protocol_status",
            text,
            (page.protocol_status,),
            lambda row: None if (found := row.page.protocol_status) is None else protocol_status_name(found.code),
            "Result of the last fetch: SUCCESS, NOTFOUND, ROBOTS_DENIED, …",
        ),
        Column(
            "parse_status",
            text,
            (page.parse_status,),
            lambda row: None if (found := row.page.parse_status) is None else parse_status_name(found),
            "Result of the last parse: success/ok, failed/exception, …",
        ),
        Column(
            "content_mime_type",
            text,
            (page.headers,),
            lambda row: _mime_type(response_header(row.page, "Content-Type")),
            "The type that the server declared.",
        ),
        Column(
            "content_mime_detected",
            text,
            (page.content_type,),
            lambda row: _mime_type(row.page.content_type),
            "The type that was detected.",
        ),
        Column(
            "content_charset",
            text,
            (page.metadata,),
            lambda row: _metadata_text(row.page, MetadataKey.CHARSET),
            "The encoding that was detected.",
        ),
        Column(
            "lang",
            text,
            (page.metadata,),
            lambda row: _metadata_text(row.page, LANGUAGE_KEY),
            "The language (ISO 639-1), with the plug-in language-identifier.",
        ),
        Column(
            "signature",
            text,
            (page.signature,),
            lambda row: found.hex() if (found := row.page.signature) else None,
            "The page's signature in hexadecimal; equal pages have equal signatures.",
        ),
        Column(
            "duplicate_of",
            text,
            (page.metadata,),
            _duplicate_of,
            "The page that dedup kept instead of this one.",
        ),
        Column("score", "float32", (page.score,), lambda row: _number(row.page.score), "The OPIC score."),
        Column(
            "page_rank", "float32", (page.page_rank,), lambda row: _number(row.page.page_rank) or None, "The PageRank."
        ),
        Column("depth", "int32", (page.markers,), _depth, "Links from the nearest seed."),
        Column("title", text, (page.title,), lambda row: _text(row.page.title), "The title."),
        Column("text", text, (page.text,), lambda row: _text(row.page.text), "The text of the whole page."),
        Column(
            "main_text",
            text,
            (page.metadata,),
            lambda row: _metadata_text(row.page, MAIN_TEXT_KEY),
            "The text without navigation, with parser.html.main.text.",
        ),
        Column(
            "outlinks",
            "links",
            (page.outlinks,),
            lambda row: _links(row.page.outlinks.decoded_items()),
            "Links of the page, with their anchor texts.",
        ),
        Column(
            "inlinks",
            "links",
            (page.inlinks,),
            lambda row: _links(row.page.inlinks.decoded_items()),
            "Links of other pages to this one, with their anchor texts.",
        ),
        Column(
            "headers",
            "headers",
            (page.headers,),
            _headers,
            "Response headers.",
        ),
        Column(
            "markdown",
            text,
            (page.text,),
            lambda row: _text(row.markdown()),
            "The main text as Markdown (extra main-text), the text of pages that are not HTML.",
        ),
        Column(
            "content",
            "binary",
            (page.content,),
            lambda row: None if (found := row.page.content) is None else b64encode(found).decode(),
            "The bytes of the page; in JSON lines and CSV as base64.",
        ),
    ]


def _number(value: float) -> float | None:
    return value if value - value == 0 else None  # JSON has no infinity


EXPORT_COLUMNS: dict[str, Column] = {column.name: column for column in _build_columns()}
"""All columns by name, in the order of an export."""
DEFAULT_COLUMNS = tuple(name for name in EXPORT_COLUMNS if name not in _ON_REQUEST)
"""The columns without ``-fields``."""
CSV_DEFAULT_COLUMNS = tuple(
    name for name in DEFAULT_COLUMNS if EXPORT_COLUMNS[name].type != "links" and name not in ("text", "main_text")
)
"""The columns of CSV without ``-fields``: those of one short value."""


def select_columns(names: Sequence[str], defaults: Sequence[str] = DEFAULT_COLUMNS) -> tuple[str, ...]:
    """Return the names of the columns of an export, in their order, without repetition.

    ``names``: names of columns, ``default`` and ``all``; empty for ``defaults``.

    Raises:
        UsageError: A name is unknown.
    """
    wanted: set[str] = set()
    for name in names or ("default",):
        if name in ("default", "all"):
            wanted.update(defaults if name == "default" else EXPORT_COLUMNS)
        elif name in EXPORT_COLUMNS:
            wanted.add(name)
        else:
            raise UsageError(f"{name!r} is not a field of an export: give some of {', '.join(EXPORT_COLUMNS)}, all")
    return tuple(name for name in EXPORT_COLUMNS if name in wanted)
