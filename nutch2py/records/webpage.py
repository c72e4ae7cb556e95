"""The records of the tables: WebPage, Host and DerivedRow, with their marks, statuses and codes.

Columns, types and codes are those of Nutch 2.4 (``schema/webpage.avsc`` and ``schema/gora-hbase-mapping.xml``, compared
with the classes by a test), plus one column that Nutch ignores: ``s:pr``, the PageRank.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

from nutch2py.records import cells
from nutch2py.records.cells import ParseStatus, ProtocolStatus
from nutch2py.records.record import Field, MapField, Record


class Mark(StrEnum):
    """Qualifiers of the family ``mk``: the job that has processed the row; the value is the batch id."""

    INJECT = "_injmrk_"
    GENERATE = "_gnmrk_"
    FETCH = "_ftcmrk_"
    PARSE = "__prsmrk__"
    UPDATEDB = "_updmrk_"
    INDEX = "_idxmrk_"
    DISTANCE = "dist"


INJECTED_PAGE = "y"
INJECTED_SITEMAP = "s"


class MetadataKey(StrEnum):
    """Keys of the family ``mtdt`` that the jobs themselves use."""

    CASH = "_csh_"  # OPIC cash, float of 4 bytes
    RESPONSE_TIME = "_rs_"  # milliseconds, int of 4 bytes
    REDIRECT_DISCOVERED = "___rdrdsc__"  # "y" from the redirect until the next updatedb
    IP = "_ip_"
    ORIGINAL_CHARSET = "OriginalCharEncoding"
    CHARSET = "CharEncodingForConversion"
    SCREENSHOT = "_screenshot_"  # JPEG
    CACHING_FORBIDDEN = "caching.forbidden"
    DUPLICATE = (
        "_dup_"  # signature in hexadecimal, a space, and the row key of the page that is kept instead of this duplicate
    )


class CrawlStatus(IntEnum):
    """Values of ``f:st``. A row that was injected and never fetched has none (0)."""

    UNFETCHED = 1
    FETCHED = 2
    GONE = 3
    REDIR_TEMP = 4
    REDIR_PERM = 5
    RETRY = 34
    NOTMODIFIED = 38

    @property
    def label(self) -> str:
        """Return Nutch's name of the status, as ``readdb`` prints it."""
        return f"status_{self.name.lower()}"


FETCHED_STATUSES = (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED)
"""Statuses of a page whose last fetch gave its content, or that it is unchanged."""


class ProtocolStatusCode(IntEnum):
    """Codes of ``f:prot``."""

    SUCCESS = 1
    FAILED = 2
    PROTO_NOT_FOUND = 10
    GONE = 11
    MOVED = 12
    TEMP_MOVED = 13
    NOTFOUND = 14
    RETRY = 15
    EXCEPTION = 16
    ACCESS_DENIED = 17
    ROBOTS_DENIED = 18
    REDIR_EXCEEDED = 19
    NOTFETCHING = 20
    NOTMODIFIED = 21
    WOULDBLOCK = 22
    BLOCKED = 23


class ParseStatusCode(IntEnum):
    """Major (below 100) and minor codes of ``p:st``."""

    NOTPARSED = 0
    SUCCESS = 1
    FAILED = 2
    OK = 0
    REDIRECT = 100
    EXCEPTION = 200
    TRUNCATED = 202
    INVALID_FORMAT = 203
    MISSING_PARTS = 204
    MISSING_CONTENT = 205


def _int(name: str, column: str) -> Field[int]:
    return Field(name, column, 0, cells.encode_int, cells.decode_int)


def _long(name: str, column: str) -> Field[int]:
    return Field(name, column, 0, cells.encode_long, cells.decode_long)


def _float(name: str, column: str) -> Field[float]:
    return Field(name, column, 0.0, cells.encode_float, cells.decode_float)


def _text(name: str, column: str) -> Field[str | None]:
    return Field(name, column, None, cells.encode_text, cells.decode_text)


def _bytes(name: str, column: str) -> Field[bytes | None]:
    return Field(name, column, None, cells.identity, cells.identity)


def _text_map(name: str, family: str) -> MapField[str]:
    return MapField(name, family, cells.encode_text, cells.decode_text)


def _bytes_map(name: str, family: str) -> MapField[bytes]:
    return MapField(name, family, cells.identity, cells.identity)


class WebPage(Record):
    """One URL. Times are milliseconds since 1970, the fetch interval is in seconds."""

    SCHEMA = "webpage"
    __slots__ = ()

    base_url = _text("baseUrl", "f:bas")
    status = _int("status", "f:st")
    fetch_time = _long("fetchTime", "f:ts")
    prev_fetch_time = _long("prevFetchTime", "f:pts")
    fetch_interval = _int("fetchInterval", "f:fi")
    retries_since_fetch = _int("retriesSinceFetch", "f:rsf")
    modified_time = _long("modifiedTime", "f:mod")
    prev_modified_time = _long("prevModifiedTime", "f:pmod")
    protocol_status: Field[ProtocolStatus | None] = Field(
        "protocolStatus", "f:prot", None, cells.encode_protocol_status, cells.decode_protocol_status
    )
    content = _bytes("content", "f:cnt")
    content_type = _text("contentType", "f:typ")
    prev_signature = _bytes("prevSignature", "p:psig")
    signature = _bytes("signature", "p:sig")
    title = _text("title", "p:t")
    text = _text("text", "p:c")
    parse_status: Field[ParseStatus | None] = Field(
        "parseStatus", "p:st", None, cells.encode_parse_status, cells.decode_parse_status
    )
    score = _float("score", "s:s")
    repr_url = _text("reprUrl", "f:rpr")
    headers = _text_map("headers", "h")
    outlinks = _text_map("outlinks", "ol")
    inlinks = _text_map("inlinks", "il")
    markers = _text_map("markers", "mk")
    metadata = _bytes_map("metadata", "mtdt")
    batch_id = _text("batchId", "f:bid")
    sitemaps = _text_map("sitemaps", "stm")
    stm_priority = _float("stmPriority", "s:sp")
    page_rank = _float("pageRank", "s:pr")


class Host(Record):
    """One host; the row key is the reversed host name. Counts are decimal text."""

    SCHEMA = "host"
    __slots__ = ()

    metadata = _bytes_map("metadata", "mtdt")
    outlinks = _text_map("outlinks", "ol")
    inlinks = _text_map("inlinks", "il")


class DerivedRow(Record):
    """A row of the derived table ``batch``: an entry of a batch list, the state of a batch, or a part of a journal."""

    SCHEMA = "batch"
    __slots__ = ()

    key = _text("key", "b:k")
    state = _text("state", "b:s")
    time = _long("time", "b:t")
    count = _long("count", "b:n")
    data = _bytes("data", "b:d")
