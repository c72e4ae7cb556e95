"""Updates a row after its fetch, by the status that the fetcher wrote (Nutch's DbUpdateReducer)."""

from __future__ import annotations

from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import FetchSchedule
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.schedule.abstract_fetch_schedule import MODIFIED, NOTMODIFIED, UNKNOWN
from nutch2py.schedule.fetch_intervals import FetchIntervals, shorten_interval
from nutch2py.support.http_date import parse_http_date

TRANSITION_FIELDS: frozenset[RecordField] = frozenset(
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
"""Fields that :func:`apply_fetch` reads, in addition to the ``fields`` of the schedule."""

_SUCCESS_STATUSES = frozenset(
    {CrawlStatus.FETCHED, CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM, CrawlStatus.NOTMODIFIED}
)


class TransitionLimits(NamedTuple):
    """Limits of the transition.

    Attributes:
        max_retries: Consecutive failures after which a page is gone.
        max_interval: Longest time in seconds until the next fetch.
    """

    max_retries: int
    max_interval: int

    @classmethod
    def from_conf(cls, conf: Configuration) -> TransitionLimits:
        """Read ``db.fetch.retry.max`` and ``db.fetch.interval.max``."""
        return cls(conf.get_int("db.fetch.retry.max", 3), FetchIntervals.from_conf(conf).maximum)


def initialize_page(url: str, page: WebPage, schedule: FetchSchedule, now: int) -> None:
    """Set up the row of a newly found page: unfetched, due at ``now`` (ms)."""
    schedule.initialize(url, page, now)
    page.status = CrawlStatus.UNFETCHED


def apply_fetch(url: str, page: WebPage, schedule: FetchSchedule, limits: TransitionLimits) -> bool:
    """Set status, next fetch, interval, retries and modified times after a fetch; return False without a fetch.

    ``page.status`` and ``page.fetch_time`` have the values that the fetcher wrote. A row without the fetch mark was
    generated but not fetched (time limit, crash) and stays unchanged; Nutch 2 postpones such a row as if it had been
    fetched. updatedb removes the mark, so the transition runs once per fetch.

    A page that failed too often becomes gone and is rescheduled as such, but keeps its interval (Nutch 1 lengthens it
    permanently; in Nutch 2 the page stays due daily). The next fetch is at most ``max_interval`` after this one,
    whatever the schedule computes; Nutch 2 limits the interval only, not the fetch time.
    """
    if page.markers.get(Mark.FETCH) is None:
        return False
    fetched = page.fetch_time
    if page.status in _SUCCESS_STATUSES:
        state = compare_signatures(page)
        modified, prev_modified = _modified_times(page, fetched, state)
        schedule.set_fetch_schedule(url, page, page.prev_fetch_time, prev_modified, fetched, modified, state)
        if page.fetch_interval > limits.max_interval:
            schedule.force_refetch(url, page, asap=False)
    elif page.status == CrawlStatus.RETRY:
        schedule.set_page_retry_schedule(url, page, 0, page.prev_modified_time, fetched)
        page.status = CrawlStatus.UNFETCHED
        if page.retries_since_fetch >= limits.max_retries:
            page.status, interval = CrawlStatus.GONE, page.fetch_interval
            schedule.set_page_gone_schedule(url, page, 0, page.prev_modified_time, fetched)
            page.fetch_interval = interval  # used again once the server responds
    elif page.status == CrawlStatus.GONE:
        schedule.set_page_gone_schedule(url, page, 0, page.prev_modified_time, fetched)
    _cap_next_fetch(page, fetched, limits.max_interval)
    return True


def _cap_next_fetch(page: WebPage, fetched: int, max_interval: int) -> None:
    """Limit the next fetch to ``max_interval`` (s) after the fetch at ``fetched`` (ms)."""
    if page.fetch_time - fetched <= max_interval * 1000:
        return
    if not 0 < page.fetch_interval <= max_interval:
        page.fetch_interval = shorten_interval(max_interval)
    page.fetch_time = fetched + page.fetch_interval * 1000


def compare_signatures(page: WebPage) -> int:
    """Compare the page with the previous fetch: return UNKNOWN, MODIFIED or NOTMODIFIED.

    Signatures count only if this fetch was parsed; otherwise both belong to earlier fetches. (Nutch 2 compares them
    anyway, and marks pages as modified that the server reported as not modified.)
    """
    if page.status == CrawlStatus.NOTMODIFIED:
        return NOTMODIFIED
    before, now = page.prev_signature, page.signature
    if page.markers.get(Mark.PARSE) is None or before is None or now is None:
        return UNKNOWN
    return NOTMODIFIED if before == now else MODIFIED


def _modified_times(page: WebPage, fetched: int, state: int) -> tuple[int, int]:
    """Return modified and previous modified time (ms).

    The response's Last-Modified header has priority. Without it, a changed page gets the fetch time, and other pages
    keep their times.
    """
    header = page.headers.get("Last-Modified")
    if header is not None:
        try:
            return parse_http_date(header), page.modified_time
        except ValueError:
            pass
    if state == MODIFIED:
        return fetched, page.modified_time
    return page.modified_time, page.prev_modified_time
