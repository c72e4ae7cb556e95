"""What a fetch makes of a row: the DbUpdateReducer's switch over the status that the fetcher left."""

from __future__ import annotations

from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import FetchSchedule
from nutch2py.records.record import Field
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.schedule.abstract_fetch_schedule import MODIFIED, NOTMODIFIED, UNKNOWN
from nutch2py.schedule.fetch_intervals import FetchIntervals, shorten_interval
from nutch2py.support.http_date import parse_http_date

TRANSITION_FIELDS: frozenset[Field[Any]] = frozenset(
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

_SUCCESS_STATUSES = frozenset(
    {CrawlStatus.FETCHED, CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM, CrawlStatus.NOTMODIFIED}
)


class TransitionLimits(NamedTuple):
    """``max_retries``: failures in a row after which a page is gone; ``max_interval``: in s."""

    max_retries: int
    max_interval: int

    @classmethod
    def from_conf(cls, conf: Configuration) -> TransitionLimits:
        """Read ``db.fetch.retry.max`` and ``db.fetch.interval.max``."""
        return cls(conf.get_int("db.fetch.retry.max", 3), FetchIntervals.from_conf(conf).maximum)


def initialize_page(url: str, page: WebPage, schedule: FetchSchedule, now: int) -> None:
    """Make the row of a page that was found by a link: unfetched, due at ``now`` (ms)."""
    schedule.initialize(url, page, now)
    page.status = CrawlStatus.UNFETCHED


def apply_fetch(url: str, page: WebPage, schedule: FetchSchedule, limits: TransitionLimits) -> bool:
    """Set status, next fetch, interval, retries and modified times after a fetch; return False if there was none.

    ``page.status`` and ``page.fetch_time`` are what the fetcher wrote. A row without the fetch mark was generated but
    not fetched (time limit, crash) and is left alone; Nutch 2 postpones such a row as if it had been fetched again.
    Since updatedb takes the mark away, a row is never moved on twice.

    A page that has failed too often is gone, and waits as such a page does, though its interval stays (Nutch 1
    lengthens that for good, and in Nutch 2 the page is due daily for ever). Whatever the schedule says, the next fetch
    is at most ``max_interval`` after this one; Nutch 2 cuts the interval only, and leaves the page to wait.
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
            page.fetch_interval = interval  # that of the page, by which it goes again once its server answers
    elif page.status == CrawlStatus.GONE:
        schedule.set_page_gone_schedule(url, page, 0, page.prev_modified_time, fetched)
    _cap_next_fetch(page, fetched, limits.max_interval)
    return True


def _cap_next_fetch(page: WebPage, fetched: int, max_interval: int) -> None:
    """Let the next fetch be at most ``max_interval`` (s) after the one at ``fetched`` (ms)."""
    if page.fetch_time - fetched <= max_interval * 1000:
        return
    if not 0 < page.fetch_interval <= max_interval:
        page.fetch_interval = shorten_interval(max_interval)
    page.fetch_time = fetched + page.fetch_interval * 1000


def compare_signatures(page: WebPage) -> int:
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


def _modified_times(page: WebPage, fetched: int, state: int) -> tuple[int, int]:
    """Return modified and previous modified time (ms).

    The answer's Last-Modified goes before. Without one, a page that has changed was modified when it was fetched, and
    the times of any other stay.
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
