"""Rows of a crawl as JSON: the names of fields are those of Nutch 2's schema."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.jobs.row_output.row_formats import row_to_dict
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage
from nutch2py.table import KeyRange, TableQuery, open_store, prefix_range
from nutch2py.url.keys import reverse_host, reverse_url

FIELDS: dict[str, Field[Any]] = {field.name: field for field in WebPage.FIELDS.values()}
LARGE_FIELDS = frozenset({"content", "text"})
"""Fields that are read only when they are named."""
SCAN_SECONDS = 10.0
_ALWAYS_READ: frozenset[Field[Any]] = frozenset({WebPage.batch_id, WebPage.fetch_time})
"""Read whatever is asked for: a row without any cell of what is read is passed over."""
_MAX_RESPONSE_CHARACTERS = 8 << 20
"""Of the rows of an answer, about; what comes after them is asked for with ``next``."""


class RowsResult(Struct, kw_only=True, frozen=True):
    """Rows, each with its ``url``. ``next_key``: the key to go on from, None behind the last row."""

    rows: list[dict[str, Any]]
    next_key: str | None


def key_range(host: str, start: str, stop: str) -> KeyRange:
    """Return the keys of a host, or from ``start`` up to ``stop``, which is left out."""
    if not host:
        return KeyRange(start, stop)
    if start or stop:
        raise InputError("host is a range of keys: give host, or start and stop")
    try:
        return prefix_range(f"{host if host.startswith('[') else reverse_host(host)}:")
    except ValueError as error:
        raise InputError(f"{host!r:.100} is no host: {error}") from error


def get_row(conf: Configuration, url: str, fields: frozenset[Field[Any]]) -> RowsResult:
    """Return the row of a URL, if there is one."""
    try:
        key = reverse_url(url)
    except ValueError as error:
        raise InputError(f"{url!r:.100} is not a URL: {error}") from error
    page = open_store(conf, WebPage).get(key, fields)
    return RowsResult(rows=[] if page is None else [row_to_dict(key, page, fields)], next_key=None)


def scan_rows(
    conf: Configuration, keys: KeyRange, fields: frozenset[Field[Any]], limit: int, batch_id: str = ""
) -> RowsResult:
    """Return the first rows of a range, with ``batch_id`` those that a batch was the last to have.

    Rows of other batches are passed over for :data:`SCAN_SECONDS` seconds, so that no request reads a whole table.
    """
    found: list[dict[str, Any]] = []
    size = 0
    ends = time.monotonic() + SCAN_SECONDS
    for key, page in open_store(conf, WebPage).scan(TableQuery(fields | _ALWAYS_READ, keys)):
        if len(found) == limit or size > _MAX_RESPONSE_CHARACTERS or time.monotonic() > ends:
            return RowsResult(rows=found, next_key=key)
        if batch_id and page.batch_id != batch_id:
            continue
        found.append(row_to_dict(key, page, fields))
        size += len(str(found[-1]))
    return RowsResult(rows=found, next_key=None)


def select_fields(names: Iterable[str]) -> frozenset[Field[Any]]:
    """Return the fields of some names; those that are not large when there is none."""
    names = [name for name in names if name]
    unknown = sorted(set(names) - FIELDS.keys())
    if unknown:
        raise InputError(f"a row has no field {unknown[0]!r:.50}: {', '.join(FIELDS)}")
    return frozenset(FIELDS[name] for name in names or FIELDS.keys() - LARGE_FIELDS)
