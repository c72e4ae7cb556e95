"""Pages that the address gate refused and does not refuse now: they are due again, not only when their retry is.

The derived table holds a row ``run/gate/<digest>`` for each setting of the gate that a fetch has worked with since the
table was last looked through: so that is done only where another setting may have refused something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.address_filter import AddressFilter, parse_excluded_address
from nutch2py.jobs.job_context import CrawlTables, open_job
from nutch2py.jobs.locking.lock_scopes import RECHECK_ADDRESSES
from nutch2py.records.record import Field
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, TableQuery, prefix_range

_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.status, WebPage.protocol_status, WebPage.fetch_time, WebPage.retries_since_fetch, WebPage.markers}
)


ADDRESS_FILTER_PREFIX = "run/gate/"
"""Keys of the notes begin so."""
_FILTER_PROPERTIES = ("http.filter.ipaddress.include", "http.filter.ipaddress.exclude")


@contextmanager
def record_address_filter(conf: Configuration, tables: CrawlTables) -> Iterator[None]:
    """Note the setting of the gate for what is fetched within the block.

    Before it, and once more when it is done: who looks the table through meanwhile does not see all that is refused.
    Where it failed, its rows are those of an open batch, and the next fetch of that makes the note.
    """
    _write_filter_note(conf, tables)
    yield
    _write_filter_note(conf, tables)


def reschedule_allowed_pages(conf: Configuration) -> int:
    """Make every page due that was refused for an address which may be connected to now; return how many.

    Reads the status of every row, unless no fetch had another setting. Pages of a batch that is open are left to it.
    """
    with open_job(conf, RECHECK_ADDRESSES) as tables:
        noted = _read_filter_notes(tables.batch_lists.store)
        if noted.keys() == {_filter_key(conf)}:
            return 0
        found, left = _reschedule(conf, tables)
        if not left:
            entries = tables.batch_lists.store
            with entries.batch(tables.check_lock) as batch:
                for key in noted.keys() - {_filter_key(conf)}:
                    if (entry := entries.get(key, {DerivedRow.data})) is not None and entry.data == noted[key]:
                        batch.delete(key)
            _write_filter_note(conf, tables)
    return found


def _reschedule(conf: Configuration, tables: CrawlTables) -> tuple[int, int]:
    """Return how many pages are made due, and how many are left to their batches."""
    gate, now, found, left = AddressFilter.from_conf(conf), now_ms(), 0, 0
    with tables.store.batch(before_flush=tables.check_lock) as batch:
        for key, page in tables.store.scan(TableQuery(_FIELDS)):
            status = page.protocol_status
            if status is None or not status.args or page.fetch_time <= now:
                continue
            address = parse_excluded_address(status.args[0])
            if address is None or not gate.is_allowed(address):
                continue
            if Mark.GENERATE in page.markers:
                left += 1
                continue
            page.status, page.fetch_time, page.retries_since_fetch = int(CrawlStatus.UNFETCHED), now, 0
            batch.put(key, page)
            found += 1
    return found, left


def _read_filter_notes(store: DataStore[DerivedRow]) -> dict[str, bytes | None]:
    return {
        key: row.data
        for key, row in store.scan(TableQuery(frozenset({DerivedRow.data}), prefix_range(ADDRESS_FILTER_PREFIX)))
    }


def _write_filter_note(conf: Configuration, tables: CrawlTables) -> None:
    entry = DerivedRow()
    entry.data = b"%d" % now_ms()
    with tables.batch_lists.store.batch(tables.check_lock) as batch:
        batch.put(_filter_key(conf), entry)


def _filter_key(conf: Configuration) -> str:
    rules = [sorted(conf.get_strings(name)) for name in _FILTER_PROPERTIES]
    return ADDRESS_FILTER_PREFIX + sha256(repr(rules).encode()).hexdigest()[:16]
