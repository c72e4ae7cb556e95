"""Tables made row by row, and what a test wants to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.records.record import Field
from nutch2py.records.webpage import DerivedRow, Mark, WebPage
from nutch2py.table import TableQuery, open_store, prefix_range
from nutch2py.url.keys import reverse_url, unreverse_url


def put(conf: Configuration, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Write rows by URL: attributes of the page; ``marks`` are names and values of marks."""
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for url, attributes in rows.items():
            page = WebPage()
            page.fetch_interval = 2_592_000
            for name, value in attributes.items():
                setattr(page, "markers" if name == "marks" else name, value)
            page.score = attributes.get("score", 1.0)
            batch.put(reverse_url(url), page)


def pages(conf: Configuration, fields: Iterable[Field[Any]] | None = None) -> dict[str, WebPage]:
    """Return every row by URL."""
    query = TableQuery(None) if fields is None else TableQuery.for_fields(fields)
    return {unreverse_url(key): page for key, page in open_store(conf, WebPage).scan(query)}


def marked(conf: Configuration, mark: Mark, value: str | None = None) -> set[str]:
    """Return the URLs with a mark, of some value if given."""
    found = pages(conf, {WebPage.markers})
    return {url for url, page in found.items() if page.markers.get(mark) and value in (None, page.markers.get(mark))}


def fetchlist(conf: Configuration, batch_id: str) -> dict[str, list[str]]:
    """Return the URLs of a batch list by partition, in their order."""
    lists: dict[str, list[str]] = {}
    entries = BatchListStore(conf).store.scan(TableQuery(frozenset({DerivedRow.key}), prefix_range(f"l/{batch_id}/")))
    for name, entry in entries:
        assert entry.key is not None
        lists.setdefault(name.split("/")[2], []).append(unreverse_url(entry.key))
    return lists
