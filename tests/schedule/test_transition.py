from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import FetchSchedule
from nutch2py.records.record import Record
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.schedule.abstract_fetch_schedule import FIXED_INTERVAL_KEY, MODIFIED, NOTMODIFIED, UNKNOWN
from nutch2py.schedule.adaptive_fetch_schedule import AdaptiveFetchSchedule
from nutch2py.schedule.default_fetch_schedule import DefaultFetchSchedule
from nutch2py.schedule.fetch_transition import (
    TRANSITION_FIELDS,
    TransitionLimits,
    apply_fetch,
    compare_signatures,
    initialize_page,
)

URL = "http://a.com/"
DAY = 86400
NOW = 1_600_000_000_000
LIMITS = TransitionLimits(3, 90 * DAY)
SCHEDULES = {"DefaultFetchSchedule": DefaultFetchSchedule, "AdaptiveFetchSchedule": AdaptiveFetchSchedule}
STATUS = {
    "db_unfetched": CrawlStatus.UNFETCHED,
    "db_fetched": CrawlStatus.FETCHED,
    "db_gone": CrawlStatus.GONE,
    "db_redir_temp": CrawlStatus.REDIR_TEMP,
    "db_redir_perm": CrawlStatus.REDIR_PERM,
    "db_notmodified": CrawlStatus.NOTMODIFIED,
    "fetch_success": CrawlStatus.FETCHED,
    "fetch_gone": CrawlStatus.GONE,
    "fetch_redir_temp": CrawlStatus.REDIR_TEMP,
    "fetch_redir_perm": CrawlStatus.REDIR_PERM,
    "fetch_notmodified": CrawlStatus.NOTMODIFIED,
    "fetch_retry": CrawlStatus.RETRY,
}


def default() -> FetchSchedule:
    return DefaultFetchSchedule(Configuration())


def fetched_page(status: int, interval: int = 30 * DAY) -> WebPage:
    page = WebPage()
    page.status = status
    page.fetch_time = NOW
    page.fetch_interval = interval
    page.markers[Mark.GENERATE] = page.markers[Mark.FETCH] = "b"
    return page


def not_applicable(case: dict[str, Any]) -> str | None:
    """Return why a case of Nutch 1 says nothing about a table of Nutch 2."""
    if case["input"].get("inject"):
        return "what inject does with an existing row is the InjectorJob's"
    if case["input"]["db_status"] in ("db_duplicate", "db_orphan") and case["input"]["fetch_status"] is None:
        return "no row of Nutch 2 has the statuses db_duplicate and db_orphan"
    return None


def state_after(case: dict[str, Any], schedule: FetchSchedule) -> int:
    given = case["input"]
    if "consecutive_fetch_retry" in given or given.get("repeat"):
        page = fetched_page(0)
        for _ in range(given.get("consecutive_fetch_retry") or given["repeat"]):
            page.status = STATUS[given.get("fetch_status", "fetch_retry")]
            assert apply_fetch(URL, page, schedule, LIMITS)
        return page.status
    page = WebPage()
    if given["db_status"] is None:
        initialize_page(URL, page, schedule, NOW)
    else:
        page.status, page.fetch_interval = STATUS.get(given["db_status"], 7), 30 * DAY
    page.markers[Mark.GENERATE] = "b"
    if given["fetch_status"] is not None:
        page.markers[Mark.FETCH] = "b"
        page.status, page.fetch_time = STATUS[given["fetch_status"]], NOW
    assert apply_fetch(URL, page, schedule, LIMITS) == (given["fetch_status"] is not None)
    return page.status


def test_status_transition_public_matrix(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    listed = cases("crawldb_states")
    left_out = [reason for case in listed if (reason := not_applicable(case))]
    passed = 0
    for case in listed:
        if not_applicable(case):
            continue
        for name in case["args"].get("schedules", SCHEDULES):
            for interval in ("2592000", "15552000"):  # the second: longer than db.fetch.interval.max (NUTCH-1245)
                if interval != "2592000" and case["input"].get("fetch_status") != "fetch_gone":
                    continue
                schedule = SCHEDULES[name](Configuration({"db.fetch.interval.default": interval}))
                assert state_after(case, schedule) == STATUS[case["expect"]], (name, case)
        passed += 1
    print(f"crawldb_states: {passed}/{len(listed)}, {len(left_out)} of Nutch 1 only: {sorted(set(left_out))}")
    assert passed + len(left_out) == len(listed)
    assert len(left_out) == 9 + 2


def test_generated_unfetched_row_stays_due() -> None:
    page = fetched_page(CrawlStatus.FETCHED)
    del page.markers[Mark.FETCH]
    before = page.fetch_time
    assert not apply_fetch(URL, page, default(), LIMITS)
    assert page.fetch_time == before


def test_success_is_due_after_interval() -> None:
    page = fetched_page(CrawlStatus.FETCHED)
    page.retries_since_fetch = 2
    apply_fetch(URL, page, default(), LIMITS)
    assert page.fetch_time == NOW + 30 * DAY * 1000
    assert (page.status, page.retries_since_fetch) == (CrawlStatus.FETCHED, 0)


def test_retry_is_due_after_one_day() -> None:
    page = fetched_page(CrawlStatus.RETRY)
    apply_fetch(URL, page, default(), LIMITS)
    assert page.fetch_time == NOW + DAY * 1000
    assert (page.status, page.retries_since_fetch) == (CrawlStatus.UNFETCHED, 1)


def test_gone_is_due_after_longer_interval() -> None:
    page = fetched_page(CrawlStatus.GONE, 10 * DAY)
    apply_fetch(URL, page, default(), LIMITS)
    assert page.fetch_interval == 15 * DAY
    assert page.fetch_time == NOW + 15 * DAY * 1000
    assert page.status == CrawlStatus.GONE


def test_interval_above_maximum_is_cut_and_page_unfetched() -> None:
    page = fetched_page(CrawlStatus.FETCHED, 400 * DAY)
    page.modified_time = 7
    apply_fetch(URL, page, default(), LIMITS)
    assert page.fetch_interval == 6998400
    assert page.fetch_time == NOW + 6998400 * 1000
    assert (page.status, page.modified_time) == (CrawlStatus.UNFETCHED, 0)


@pytest.mark.parametrize("status", [CrawlStatus.FETCHED, CrawlStatus.GONE, CrawlStatus.RETRY])
@pytest.mark.parametrize("interval", [0, 3600, 400 * DAY])
@pytest.mark.parametrize("name", SCHEDULES)
def test_fetch_time_is_never_beyond_maximum_interval(name: str, interval: int, status: CrawlStatus) -> None:
    conf = Configuration({"db.fetch.interval.max": "36000"})
    page = fetched_page(status, interval)
    page.metadata[FIXED_INTERVAL_KEY] = str(400 * DAY).encode()
    for _ in range(4):
        page.status, page.fetch_time = status, NOW
        apply_fetch(URL, page, SCHEDULES[name](conf), TransitionLimits.from_conf(conf))
        assert NOW < page.fetch_time <= NOW + 36_000_000


def test_repeatedly_failing_page_waits_and_keeps_interval() -> None:
    page, waits = fetched_page(CrawlStatus.RETRY, 10 * DAY), []
    for _ in range(5):
        page.status, page.fetch_time = CrawlStatus.RETRY, NOW
        apply_fetch(URL, page, default(), LIMITS)
        waits.append((page.fetch_time - NOW) // (DAY * 1000))
    assert waits == [1, 1, 15, 15, 15]
    assert (page.status, page.retries_since_fetch, page.fetch_interval) == (CrawlStatus.GONE, 5, 10 * DAY)
    page.status, page.fetch_time = CrawlStatus.FETCHED, NOW
    apply_fetch(URL, page, default(), LIMITS)
    assert (page.fetch_time, page.retries_since_fetch) == (NOW + 10 * DAY * 1000, 0)


def test_changed_page_without_last_modified_uses_fetch_time() -> None:
    page = fetched_page(CrawlStatus.FETCHED)
    page.modified_time, page.prev_modified_time = 5, 4
    page.markers[Mark.PARSE], page.prev_signature, page.signature = "b", b"a", b"b"
    apply_fetch(URL, page, default(), LIMITS)
    assert (page.modified_time, page.prev_modified_time) == (NOW, 5)


def test_last_modified_header_sets_modified_time() -> None:
    page = fetched_page(CrawlStatus.FETCHED)
    page.modified_time, page.prev_modified_time = 5, 4
    page.headers["Last-Modified"] = "Sun, 06 Nov 1994 08:49:37 GMT"
    apply_fetch(URL, page, default(), LIMITS)
    assert (page.modified_time, page.prev_modified_time) == (784111777000, 5)


@pytest.mark.parametrize("header", [None, "yesterday", "Sun, 06 Nov 999999999999 08:49:37 GMT"])
def test_invalid_last_modified_keeps_times(header: str | None) -> None:
    page = fetched_page(CrawlStatus.FETCHED)
    page.modified_time, page.prev_modified_time = 5, 4
    if header:
        page.headers["Last-Modified"] = header
    apply_fetch(URL, page, default(), LIMITS)
    assert (page.modified_time, page.prev_modified_time) == (5, 4)


@pytest.mark.parametrize(
    ("status", "parsed", "signatures", "state"),
    [
        (CrawlStatus.FETCHED, True, (b"a", b"a"), NOTMODIFIED),
        (CrawlStatus.FETCHED, True, (b"a", b"b"), MODIFIED),
        (CrawlStatus.FETCHED, True, (None, b"b"), UNKNOWN),
        (CrawlStatus.FETCHED, False, (b"a", b"b"), UNKNOWN),
        (CrawlStatus.NOTMODIFIED, False, (b"a", b"b"), NOTMODIFIED),
        (CrawlStatus.REDIR_TEMP, False, (b"a", b"a"), UNKNOWN),
    ],
)
def test_modified_state_is_derived_from_signature(
    status: CrawlStatus, parsed: bool, signatures: tuple[bytes | None, bytes | None], state: int
) -> None:
    page = fetched_page(status)
    page.prev_signature, page.signature = signatures
    if parsed:
        page.markers[Mark.PARSE] = "b"
    assert compare_signatures(page) == state


def test_only_declared_fields_are_read() -> None:
    schedule = default()
    for status in CrawlStatus:
        page = WebPage(
            {b"f": {b"st": status.to_bytes(4, "big")}, b"mk": {b"_ftcmrk_": b"b"}}, TRANSITION_FIELDS | schedule.fields
        )
        assert isinstance(page, Record)
        assert apply_fetch(URL, page, schedule, LIMITS)


def test_limits_are_read_from_configuration() -> None:
    conf = Configuration({"db.fetch.retry.max": "5", "db.fetch.interval.max": "100"})
    assert TransitionLimits.from_conf(conf) == (5, 100)
