"""Pages that the address gate refused and does not refuse now: they are due again, not only when their retry is.

The derived table holds a row ``run/gate/<digest>`` for each setting of the gate that a fetch has worked with since the
table was last looked through: so that is done only where another setting may have refused something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.fetcher.gate import AddressGate, excluded_address
from nutch2py.jobs.beginning import CrawlTables, begin
from nutch2py.jobs.works import ALLOW
from nutch2py.record import Field
from nutch2py.table import DataStore, Query, prefix_range
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry, CrawlStatus, Mark, WebPage

_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.status, WebPage.protocol_status, WebPage.fetch_time, WebPage.retries_since_fetch, WebPage.markers}
)


GATES = "run/gate/"
"""Keys of the notes begin so."""
_RULES = ("http.filter.ipaddress.include", "http.filter.ipaddress.exclude")


@contextmanager
def noting_gate(conf: Configuration, tables: CrawlTables) -> Iterator[None]:
    """Note the setting of the gate for what is fetched within the block.

    Before it, and once more when it is done: who looks the table through meanwhile does not see all that is refused.
    Where it failed, its rows are those of an open batch, and the next fetch of that makes the note.
    """
    _note(conf, tables)
    yield
    _note(conf, tables)


def allow_again(conf: Configuration) -> int:
    """Make every page due that was refused for an address which may be connected to now; return how many.

    Reads the status of every row, unless no fetch had another setting. Pages of a batch that is open are left to it.
    """
    with begin(conf, ALLOW) as tables:
        noted = _noted(tables.lists.store)
        if noted.keys() == {_key(conf)}:
            return 0
        found, left = _allow(conf, tables)
        if not left:
            entries = tables.lists.store
            with entries.batch(tables.check) as batch:
                for key in noted.keys() - {_key(conf)}:
                    if (entry := entries.get(key, {BatchEntry.data})) is not None and entry.data == noted[key]:
                        batch.delete(key)
            _note(conf, tables)
    return found


def _allow(conf: Configuration, tables: CrawlTables) -> tuple[int, int]:
    """Return how many pages are made due, and how many are left to their batches."""
    gate, now, found, left = AddressGate.from_conf(conf), now_ms(), 0, 0
    with tables.store.batch(before=tables.check) as batch:
        for key, page in tables.store.scan(Query(_FIELDS)):
            status = page.protocol_status
            if status is None or not status.args or page.fetch_time <= now:
                continue
            address = excluded_address(status.args[0])
            if address is None or not gate.accepts(address):
                continue
            if Mark.GENERATE in page.markers:
                left += 1
                continue
            page.status, page.fetch_time, page.retries_since_fetch = int(CrawlStatus.UNFETCHED), now, 0
            batch.put(key, page)
            found += 1
    return found, left


def _noted(entries: DataStore[BatchEntry]) -> dict[str, bytes | None]:
    return {key: row.data for key, row in entries.scan(Query(frozenset({BatchEntry.data}), prefix_range(GATES)))}


def _note(conf: Configuration, tables: CrawlTables) -> None:
    entry = BatchEntry()
    entry.data = b"%d" % now_ms()
    with tables.lists.store.batch(tables.check) as batch:
        batch.put(_key(conf), entry)


def _key(conf: Configuration) -> str:
    rules = [sorted(conf.get_strings(name)) for name in _RULES]
    return GATES + sha256(repr(rules).encode()).hexdigest()[:16]
