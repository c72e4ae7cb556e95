"""Recheck of pages that failed for a reason of this machine, so that they need not wait for their next fetch.

Pages that the address filter denied become due at once when it allows them now. Pages that failed for another reason of
this machine (DNS, proxy, network) become due at once, since only a request shows whether the cause is gone. The note
``run/local`` in the derived table means that such pages may exist.

For each setting of the address filter with which a fetch has run since the last recheck, the derived table has a row
``run/gate/<digest>``. The table is scanned only when another setting may have denied pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.output.page_updater import is_local_failure
from nutch2py.fetcher.protocols.address_filter import AddressFilter, parse_excluded_address
from nutch2py.jobs.job_context import CrawlTables, open_job
from nutch2py.jobs.locking.lock_scopes import RECHECK_ADDRESSES
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, TableQuery, prefix_range

_FIELDS: frozenset[RecordField] = frozenset(
    {WebPage.status, WebPage.protocol_status, WebPage.fetch_time, WebPage.retries_since_fetch, WebPage.markers}
)

ADDRESS_FILTER_PREFIX = "run/gate/"
"""Key prefix of the notes."""
_LOCAL_FAILURES_KEY = "run/local"
_FILTER_PROPERTIES = ("http.filter.ipaddress.include", "http.filter.ipaddress.exclude")


def note_local_failures(tables: CrawlTables) -> None:
    """Note that pages of a fetch failed for a reason of this machine."""
    entry = DerivedRow()
    entry.data = b"1"
    with tables.batch_lists.store.batch(tables.check_lock) as batch:
        batch.put(_LOCAL_FAILURES_KEY, entry)


@contextmanager
def record_address_filter(conf: Configuration, tables: CrawlTables) -> Iterator[None]:
    """Note the setting of the address filter for all fetches within the block.

    The note is written before and after the block: a recheck in between does not see all denied pages. If the block
    fails, its rows belong to an open batch, and the next fetch of that batch writes the note.
    """
    _write_filter_note(conf, tables)
    yield
    _write_filter_note(conf, tables)


def reschedule_allowed_pages(conf: Configuration) -> int:
    """Make every page due that failed for a reason of this machine which may be gone; return their number.

    Reads the status of every row, unless all fetches had the current setting of the address filter and no page failed
    for another reason of this machine. Skips pages of open batches.
    """
    with open_job(conf, RECHECK_ADDRESSES) as tables:
        notes = _read_filter_notes(tables.batch_lists.store)
        store = tables.batch_lists.store
        has_local_failures = store.get(_LOCAL_FAILURES_KEY, {DerivedRow.data}) is not None
        if notes.keys() == {_filter_key(conf)} and not has_local_failures:
            return 0
        rescheduled, skipped = reschedule(conf, tables)
        if not skipped:
            entries = tables.batch_lists.store
            with entries.batch(tables.check_lock) as batch:
                for key in notes.keys() - {_filter_key(conf)}:
                    if (entry := entries.get(key, {DerivedRow.data})) is not None and entry.data == notes[key]:
                        batch.delete(key)
                if has_local_failures:
                    batch.delete(_LOCAL_FAILURES_KEY)
            _write_filter_note(conf, tables)
    return rescheduled


def reschedule(conf: Configuration, tables: CrawlTables) -> tuple[int, int]:
    """Return the number of pages that became due, and of those that were skipped because their batch is open."""
    address_filter, now, rescheduled, skipped = AddressFilter.from_conf(conf), now_ms(), 0, 0
    with tables.store.batch(before_flush=tables.check_lock) as batch:
        for key, page in tables.store.scan(TableQuery(_FIELDS)):
            status = page.protocol_status
            if status is None or not status.args or page.fetch_time <= now:
                continue
            address, is_local = parse_excluded_address(status.args[0]), is_local_failure(status)
            if not (is_local if address is None else address_filter.is_allowed(address)):
                continue
            if Mark.GENERATE in page.markers:
                skipped += 1
                continue
            page.fetch_time = now
            if not is_local:  # of a version that counted it as a failure of the page
                page.status, page.retries_since_fetch = int(CrawlStatus.UNFETCHED), 0
            batch.put(key, page)
            rescheduled += 1
    return rescheduled, skipped


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
