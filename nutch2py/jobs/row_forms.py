"""A row as JSON and as a line of CSV; names of fields are those of Nutch 2's schema."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from nutch2py.cells import ParseStatus, ProtocolStatus
from nutch2py.jobs.readdb_text import bytes_text, parse_status_name, protocol_status_name, status_text
from nutch2py.record import Field, MapField
from nutch2py.url.keys import name_of_key
from nutch2py.webpage import Mark, WebPage

_MOST = 200_000
"""Characters of a value; what is longer is cut."""
COLUMNS = (
    "url", "status", "fetchTime", "prevFetchTime", "fetchInterval", "retriesSinceFetch", "modifiedTime", "score",
    "pageRank", "depth", "protocolStatus", "protocolArgs", "parseStatus", "signature", "title", "batchId",
)  # fmt: skip
"""Of :func:`csv_row`: times in ms since 1970, the interval in seconds."""


def row(key: str, page: WebPage, fields: Iterable[Field[Any]], most: int | None = _MOST) -> dict[str, Any]:
    """Return the URL of a row, and its fields that are set; texts are cut behind ``most`` characters."""
    values = {field.name: _shown(field, page, most) for field in sorted(fields, key=lambda each: each.name)}
    shown = {name: value for name, value in values.items() if value not in (None, {})}
    return {"url": plain(name_of_key(key), most), **shown}


def _shown(field: Field[Any], page: WebPage, most: int | None) -> Any:
    value = field.__get__(page, WebPage)
    if isinstance(field, MapField):
        found: Mapping[str, Any] = dict(value.items())
        return {plain(key, most): plain(each, most) for key, each in found.items()}
    return value.hex() if field.name in ("signature", "prevSignature") and value else plain(value, most)


def plain(value: Any, most: int | None = None) -> Any:
    """Return a value as JSON can have it: bytes as readdb shows them, what is no text in UTF-8 as a question mark."""
    if isinstance(value, bytes):
        value = bytes_text(value)
    if isinstance(value, ProtocolStatus | ParseStatus):
        return {name: plain(getattr(value, name), most) for name in value._fields}
    if isinstance(value, list | tuple):
        return [plain(each, most) for each in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()[:most]
    return value


def json_row(key: str, page: WebPage, fields: Iterable[Field[Any]], markdown: str | None) -> str:
    """Return a row whole, as a line of JSON."""
    told = row(key, page, fields, most=None)
    return orjson.dumps(told if markdown is None else {**told, "markdown": plain(markdown)}).decode()


def csv_row(key: str, page: WebPage) -> list[Any]:
    """Return the values of :data:`COLUMNS`; "" for what a row has not."""
    protocol, parse, signature = page.protocol_status, page.parse_status, page.signature
    return [
        name_of_key(key),
        status_text(page.status),
        page.fetch_time,
        page.prev_fetch_time,
        page.fetch_interval,
        page.retries_since_fetch,
        page.modified_time,
        f"{page.score:.9g}",
        f"{page.page_rank:.9g}",
        page.markers.get(Mark.DISTANCE) or "",
        "" if protocol is None else protocol_status_name(protocol.code),
        "" if protocol is None else " ".join(protocol.args),
        "" if parse is None else parse_status_name(parse),
        "" if signature is None else signature.hex(),
        page.title or "",
        page.batch_id or "",
    ]


def csv_line(values: Sequence[Any]) -> str:
    """Return a line of CSV (RFC 4180) without its end; what is no text in UTF-8 becomes a question mark.

    >>> csv_line(["a,b", 1, "c"])
    '"a,b",1,c'
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue().encode("utf-8", "replace").decode()
