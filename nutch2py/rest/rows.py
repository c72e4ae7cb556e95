"""Rows of a crawl as JSON: the names of fields are those of Nutch 2's schema."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.jobs.row_forms import row
from nutch2py.record import Field
from nutch2py.table import KeyRange, Query, open_store, prefix_range
from nutch2py.url.keys import reverse_host, reverse_url
from nutch2py.webpage import WebPage

FIELDS: dict[str, Field[Any]] = {field.name: field for field in WebPage.FIELDS.values()}
LARGE = frozenset({"content", "text"})
"""Fields that are read only when they are named."""
SEARCHING = 10.0
_OF_EVERY_ROW: frozenset[Field[Any]] = frozenset({WebPage.batch_id, WebPage.fetch_time})
"""Read whatever is asked for: a row without any cell of what is read is passed over."""
_MOST_CHARACTERS = 8 << 20
"""Of the rows of an answer, about; what comes after them is asked for with ``next``."""


class Rows(Struct, kw_only=True, frozen=True):
    """Rows, each with its ``url``. ``next``: the key to go on from, None behind the last row."""

    rows: list[dict[str, Any]]
    next: str | None


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


def one_row(conf: Configuration, url: str, fields: frozenset[Field[Any]]) -> Rows:
    """Return the row of a URL, if there is one."""
    try:
        key = reverse_url(url)
    except ValueError as error:
        raise InputError(f"{url!r:.100} is not a URL: {error}") from error
    page = open_store(conf, WebPage).get(key, fields)
    return Rows(rows=[] if page is None else [row(key, page, fields)], next=None)


def some_rows(
    conf: Configuration, keys: KeyRange, fields: frozenset[Field[Any]], limit: int, batch_id: str = ""
) -> Rows:
    """Return the first rows of a range, with ``batch_id`` those that a batch was the last to have.

    Rows of other batches are passed over for :data:`SEARCHING` seconds, so that no request reads a whole table.
    """
    found: list[dict[str, Any]] = []
    size = 0
    ends = time.monotonic() + SEARCHING
    for key, page in open_store(conf, WebPage).scan(Query(fields | _OF_EVERY_ROW, keys)):
        if len(found) == limit or size > _MOST_CHARACTERS or time.monotonic() > ends:
            return Rows(rows=found, next=key)
        if batch_id and page.batch_id != batch_id:
            continue
        found.append(row(key, page, fields))
        size += len(str(found[-1]))
    return Rows(rows=found, next=None)


def chosen(names: Iterable[str]) -> frozenset[Field[Any]]:
    """Return the fields of some names; those that are not large when there is none."""
    names = [name for name in names if name]
    unknown = sorted(set(names) - FIELDS.keys())
    if unknown:
        raise InputError(f"a row has no field {unknown[0]!r:.50}: {', '.join(FIELDS)}")
    return frozenset(FIELDS[name] for name in names or FIELDS.keys() - LARGE)
