"""What a fetch makes of a row: the DbUpdateReducer's switch over the status that the fetcher left."""

from __future__ import annotations

from typing import Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.contracts import FetchSchedule
from nutch2py.record import Field
from nutch2py.schedule.abstract import MODIFIED, NOTMODIFIED, UNKNOWN
from nutch2py.schedule.http_date import parse_http_date
from nutch2py.webpage import CrawlStatus, Mark, WebPage

FIELDS: frozenset[Field[Any]] = frozenset(
    {
        WebPage.status,
        WebPage.fetch_time,
        WebPage.prev_fetch_time,
        WebPage.fetch_interval,
        WebPage.retries_since_fetch,
        WebPage.modified_time,
        WebPage.prev_modified_time,
        WebPage.signature,
        WebPage.prev_signature,
        WebPage.headers,
        WebPage.markers,
    }
)
"""What :func:`apply_fetch` reads, besides the ``fields`` of the schedule."""

_ANSWERED = frozenset({CrawlStatus.FETCHED, CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM, CrawlStatus.NOTMODIFIED})


class TransitionLimits(NamedTuple):
    """``retry_max``: failures in a row after which a page is gone; ``max_interval``: in s."""

    retry_max: int
    max_interval: int

    @classmethod
    def of(cls, conf: Configuration) -> TransitionLimits:
        """Read ``db.fetch.retry.max`` and ``db.fetch.interval.max``."""
        return cls(conf.get_int("db.fetch.retry.max", 3), conf.get_int("db.fetch.interval.max", 7776000))


def initialize_page(url: str, page: WebPage, schedule: FetchSchedule, now: int) -> None:
    """Make the row of a page that was found by a link: unfetched, due at ``now`` (ms)."""
    schedule.initialize(url, page, now)
    page.status = CrawlStatus.UNFETCHED


def apply_fetch(url: str, page: WebPage, schedule: FetchSchedule, limits: TransitionLimits) -> bool:
    """Set status, next fetch, interval, retries and modified times after a fetch; return False if there was none.

    ``page.status`` and ``page.fetch_time`` are what the fetcher wrote. A row without the fetch mark was generated but
    not fetched (time limit, crash) and is left alone; Nutch 2 postpones such a row as if it had been fetched again.
    Since updatedb takes the mark away, a row is never moved on twice.
    """
    if page.markers.get(Mark.FETCH) is None:
        return False
    fetched = page.fetch_time
    if page.status in _ANSWERED:
        modified, prev_modified = _modified_times(page)
        schedule.set_fetch_schedule(
            url, page, page.prev_fetch_time, prev_modified, fetched, modified, modified_state(page)
        )
        if page.fetch_interval > limits.max_interval:
            schedule.force_refetch(url, page, asap=False)
    elif page.status == CrawlStatus.RETRY:
        schedule.set_page_retry_schedule(url, page, 0, page.prev_modified_time, fetched)
        failed = page.retries_since_fetch >= limits.retry_max
        page.status = CrawlStatus.GONE if failed else CrawlStatus.UNFETCHED
    elif page.status == CrawlStatus.GONE:
        schedule.set_page_gone_schedule(url, page, 0, page.prev_modified_time, fetched)
    return True


def modified_state(page: WebPage) -> int:
    """Return whether the page changed since the fetch before: UNKNOWN, MODIFIED or NOTMODIFIED.

    Signatures are compared only if this fetch was parsed: else they are those of two earlier fetches (Nutch 2 compares
    them even then, and calls a page modified of which the server said that it is not).
    """
    if page.status == CrawlStatus.NOTMODIFIED:
        return NOTMODIFIED
    before, now = page.prev_signature, page.signature
    if page.markers.get(Mark.PARSE) is None or before is None or now is None:
        return UNKNOWN
    return NOTMODIFIED if before == now else MODIFIED


def _modified_times(page: WebPage) -> tuple[int, int]:
    """Return modified and previous modified time (ms): those of the row, unless the answer says Last-Modified."""
    header = page.headers.get("Last-Modified")
    if header is not None:
        try:
            return parse_http_date(header), page.modified_time
        except ValueError:
            pass
    return page.modified_time, page.prev_modified_time
