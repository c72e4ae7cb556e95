"""Formats rows as JSON and CSV, with the field names of Nutch 2's schema."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

import orjson

from nutch2py.jobs.row_output.row_text import format_bytes, format_status, parse_status_name, protocol_status_name
from nutch2py.records.cells import ParseStatus, ProtocolStatus
from nutch2py.records.record import MapField, RecordField
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.support.formatting import valid_utf8
from nutch2py.url.keys import url_or_key

_MAX_VALUE_CHARACTERS = 200_000
"""Characters after which a value is truncated."""
CSV_COLUMNS = (
    "url", "status", "fetchTime", "prevFetchTime", "fetchInterval", "retriesSinceFetch", "modifiedTime", "score",
    "pageRank", "depth", "protocolStatus", "protocolArgs", "parseStatus", "signature", "title", "batchId",
)  # fmt: skip
"""Columns of :func:`get_csv_values`: times in ms since 1970, the interval in seconds."""


def row_to_dict(
    key: str, page: WebPage, fields: Iterable[RecordField], max_characters: int | None = _MAX_VALUE_CHARACTERS
) -> dict[str, object]:
    """Return the URL and the non-empty fields of a row; long texts are truncated to ``max_characters``."""
    values = {
        field.name: _get_value(field, page, max_characters) for field in sorted(fields, key=lambda each: each.name)
    }
    shown = {name: value for name, value in values.items() if value not in (None, {})}
    return {"url": to_json_value(url_or_key(key), max_characters), **shown}


def _get_value(field: RecordField, page: WebPage, max_characters: int | None) -> object:
    value = getattr(page, field.attribute)
    if isinstance(field, MapField):
        found: Mapping[str, object] = dict(value.items())
        return {to_json_value(key, max_characters): to_json_value(each, max_characters) for key, each in found.items()}
    return (
        value.hex() if field.name in ("signature", "prevSignature") and value else to_json_value(value, max_characters)
    )


def to_json_value(value: object, max_characters: int | None = None) -> object:
    """Return a value as JSON type: bytes as readdb shows them, text that is not valid UTF-8 with question marks."""
    if isinstance(value, bytes):
        value = format_bytes(value)
    if isinstance(value, ProtocolStatus | ParseStatus):
        return {name: to_json_value(getattr(value, name), max_characters) for name in value._fields}
    if isinstance(value, list | tuple):
        return [to_json_value(each, max_characters) for each in value]
    if isinstance(value, str):
        return valid_utf8(value)[:max_characters]
    return value


def format_json_row(key: str, page: WebPage, fields: Iterable[RecordField], markdown: str | None) -> str:
    """Return a complete row as a line of JSON."""
    values = row_to_dict(key, page, fields, max_characters=None)
    return orjson.dumps(values if markdown is None else {**values, "markdown": to_json_value(markdown)}).decode()


def get_csv_values(key: str, page: WebPage) -> list[object]:
    """Return the values of :data:`CSV_COLUMNS`; "" for missing values."""
    protocol, parse, signature = page.protocol_status, page.parse_status, page.signature
    return [
        url_or_key(key),
        format_status(page.status),
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


def format_csv_line(values: Sequence[object]) -> str:
    """Return a line of CSV (RFC 4180) without line end; invalid UTF-8 becomes question marks.

    >>> format_csv_line(["a,b", 1, "c"])
    '"a,b",1,c'
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return valid_utf8(out.getvalue())
