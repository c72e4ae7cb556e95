"""Reads table rows as JSON with the field names of Nutch 2's schema."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.jobs.row_output.row_formats import row_to_dict
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.table import KeyRange, TableQuery, open_store, prefix_range
from nutch2py.url.keys import reverse_host, reverse_url

FIELDS: dict[str, RecordField] = {field.name: field for field in WebPage.FIELDS.values()}
LARGE_FIELDS = frozenset({"content", "text"})
"""Fields that are read only by name."""
_URL = "url"
SCAN_SECONDS = 10.0
_ALWAYS_READ: frozenset[RecordField] = frozenset({WebPage.batch_id, WebPage.fetch_time})
"""Read in addition: a scan skips rows without any cell of the fields that it reads."""
_MAX_RESPONSE_CHARACTERS = 8 << 20
"""Approximate limit of the rows of a response; a client continues with ``nextKey``."""


class RowsResult(Struct, rename="camel", kw_only=True, frozen=True):
    """Rows, each with its ``url``. ``next_key``: the key to continue from, None after the last row."""

    rows: list[dict[str, Any]]
    next_key: str | None


def key_range(host: str, start: str, stop: str) -> KeyRange:
    """Return the keys of a host, or from ``start`` up to ``stop``, exclusive."""
    if not host:
        return KeyRange(start, stop)
    if start or stop:
        raise InputError("host excludes start and stop: use one or the other")
    try:
        return prefix_range(f"{host if host.startswith('[') else reverse_host(host)}:")
    except ValueError as error:
        raise InputError(f"{host!r:.100} is not a host: {error}") from error


def get_row(conf: Configuration, url: str, fields: frozenset[RecordField]) -> RowsResult:
    """Return the row of a URL, if it exists."""
    try:
        key = reverse_url(url)
    except ValueError as error:
        raise InputError(f"{url!r:.100} is not a URL: {error}") from error
    page = open_store(conf, WebPage).get(key, fields)
    return RowsResult(rows=[] if page is None else [row_to_dict(key, page, fields)], next_key=None)


def scan_rows(
    conf: Configuration, keys: KeyRange, fields: frozenset[RecordField], limit: int, batch_id: str = ""
) -> RowsResult:
    """Return the first rows of a range; with ``batch_id``, only rows whose last batch it is.

    A scan stops after :data:`SCAN_SECONDS` seconds, so that no request reads the whole table.
    """
    rows: list[dict[str, object]] = []
    size = 0
    deadline = time.monotonic() + SCAN_SECONDS
    for key, page in open_store(conf, WebPage).scan(TableQuery(fields | _ALWAYS_READ, keys)):
        if len(rows) == limit or size > _MAX_RESPONSE_CHARACTERS or time.monotonic() > deadline:
            return RowsResult(rows=rows, next_key=key)
        if batch_id and page.batch_id != batch_id:
            continue
        rows.append(row_to_dict(key, page, fields))
        size += len(str(rows[-1]))
    return RowsResult(rows=rows, next_key=None)


def select_fields(names: Iterable[str]) -> frozenset[RecordField]:
    """Return the fields by name; without names, all but the large ones. Every row has ``url`` besides."""
    names = [name for name in names if name]
    unknown = sorted(set(names) - FIELDS.keys() - {_URL})
    if unknown:
        raise InputError(f"unknown field {unknown[0]!r:.50}: use {_URL}, {', '.join(FIELDS)}")
    if names and set(names) == {_URL}:
        return frozenset()
    names = [name for name in names if name != _URL]
    return frozenset(FIELDS[name] for name in names or FIELDS.keys() - LARGE_FIELDS)
