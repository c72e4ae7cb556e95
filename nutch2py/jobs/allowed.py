"""Pages that the address gate refused and does not refuse now: they are due again, not only when their retry is."""

from __future__ import annotations

from typing import Any

from nutch2py.conf import Configuration
from nutch2py.fetcher.gate import AddressGate, excluded_address
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.works import ALLOW
from nutch2py.record import Field
from nutch2py.table import Query
from nutch2py.table.clock import now_ms
from nutch2py.webpage import CrawlStatus, Mark, WebPage

_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.status, WebPage.protocol_status, WebPage.fetch_time, WebPage.retries_since_fetch, WebPage.markers}
)


def allow_again(conf: Configuration) -> int:
    """Make every page due that was refused for an address which may be connected to now; return how many.

    Reads the status of every row. Pages of a batch that is open are left to it.
    """
    gate, now, found = AddressGate.from_conf(conf), now_ms(), 0
    with begin(conf, ALLOW) as tables, tables.store.batch(before=tables.check) as batch:
        for key, page in tables.store.scan(Query(_FIELDS)):
            status = page.protocol_status
            if status is None or not status.args or Mark.GENERATE in page.markers or page.fetch_time <= now:
                continue
            address = excluded_address(status.args[0])
            if address is not None and gate.accepts(address):
                page.status, page.fetch_time, page.retries_since_fetch = int(CrawlStatus.UNFETCHED), now, 0
                batch.put(key, page)
                found += 1
    return found
