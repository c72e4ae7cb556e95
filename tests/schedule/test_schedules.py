from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.schedule import abstract_fetch_schedule as base
from nutch2py.schedule.abstract_fetch_schedule import FIXED_INTERVAL_KEY
from nutch2py.schedule.adaptive_fetch_schedule import AdaptiveFetchSchedule
from nutch2py.schedule.default_fetch_schedule import DefaultFetchSchedule
from nutch2py.schedule.fetch_schedule import check_fetch_schedule, create_fetch_schedule

URL = "http://www.example.com/"
DAY = 86400
NOW = 1_600_000_000_000
ADAPTIVE = "db.fetch.schedule.adaptive."


def page_with(interval: int, fixed: bytes | None = None) -> WebPage:
    page = WebPage()
    page.fetch_interval = interval
    if fixed is not None:
        page.metadata[FIXED_INTERVAL_KEY] = fixed
    return page


def adaptive(folder: Path | None = None, **properties: object) -> AdaptiveFetchSchedule:
    conf = Configuration(
        {f"{ADAPTIVE}{name}": str(value) for name, value in properties.items()}, [folder] if folder else []
    )
    return AdaptiveFetchSchedule(conf)


def days_until_next(schedule: AdaptiveFetchSchedule, page: WebPage, unchanged_days: float, state: int) -> float:
    schedule.set_fetch_schedule(URL, page, 0, 0, NOW, NOW - int(unchanged_days * DAY * 1000), state)
    return (page.fetch_time - NOW) / DAY / 1000


def test_fetch_schedule_public_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    states = {"UNKNOWN": base.UNKNOWN, "MODIFIED": base.MODIFIED, "NOTMODIFIED": base.NOTMODIFIED}
    listed = cases("fetch_schedule")
    passed = 0
    for case in listed:
        given_, args, expect = case["input"], case["args"], case["expect"]
        page = page_with(given_["fetchInterval"])
        if "state" in given_:
            schedule = adaptive(inc_rate=args["inc_rate"], dec_rate=args["dec_rate"])
            schedule.set_fetch_schedule(URL, page, 0, 0, 0, given_["modifiedTime"], states[given_["state"]])
            assert page.fetch_interval == expect["fetchInterval"], case
        else:
            schedule = adaptive(
                sync_delta_rate=args["db.fetch.schedule.adaptive.sync_delta_rate"],
                min_interval=args["min_interval_days"] * DAY,
                max_interval=args["max_interval_days"] * DAY,
            )
            # the state that the case passes is none of the schedule's: the interval stays, as for UNKNOWN
            days = days_until_next(schedule, page, args["modified_days_ago"], base.UNKNOWN)
            assert expect["next_fetch_in_days_min"] <= days <= expect["next_fetch_in_days_max"], (case, days)
        passed += 1
    print(f"fetch_schedule: {passed}/{len(listed)}")
    assert passed == len(listed) > 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("org.apache.nutch.crawl.DefaultFetchSchedule", DefaultFetchSchedule),
        ("org.apache.nutch.crawl.AdaptiveFetchSchedule", AdaptiveFetchSchedule),
        ("nutch2py.schedule.adaptive_fetch_schedule.AdaptiveFetchSchedule", AdaptiveFetchSchedule),
        ("", DefaultFetchSchedule),
    ],
)
def test_schedule_class_property_selects_schedule(name: str, kind: type[Any]) -> None:
    assert type(create_fetch_schedule(Configuration({"db.fetch.schedule.class": name}))) is kind


def test_unknown_schedule_error_lists_known() -> None:
    with pytest.raises(ConfigurationError, match="MySchedule: known are AdaptiveFetchSchedule, DefaultFetchSchedule"):
        create_fetch_schedule(Configuration({"db.fetch.schedule.class": "com.example.MySchedule"}))


def test_new_page_is_due_immediately() -> None:
    page = WebPage()
    DefaultFetchSchedule(Configuration({"db.fetch.interval.default": "77"})).initialize(URL, page, NOW)
    assert (page.fetch_time, page.fetch_interval, page.retries_since_fetch) == (NOW, 77, 0)


def test_interval_zero_becomes_default() -> None:
    schedule, page = DefaultFetchSchedule(Configuration()), page_with(0)
    schedule.set_fetch_schedule(URL, page, 0, 0, NOW, 0, base.UNKNOWN)
    assert page.fetch_interval == 30 * DAY
    assert page.fetch_time == NOW + 30 * DAY * 1000


@pytest.mark.parametrize(
    ("before", "after"), [(100, 150), (101, 151), (60 * DAY, 6998400), (10**9, 6998400), (0, 45 * DAY)]
)
def test_gone_page_interval_grows_by_half_up_to_maximum(before: int, after: int) -> None:
    page = page_with(before)
    DefaultFetchSchedule(Configuration()).set_page_gone_schedule(URL, page, 0, 0, NOW)
    assert page.fetch_interval == after
    assert page.fetch_time == NOW + after * 1000


def test_gone_page_with_fixed_interval_keeps_it() -> None:
    page = page_with(3600, b"3600")
    DefaultFetchSchedule(Configuration()).set_page_gone_schedule(URL, page, 0, 0, NOW)
    assert (page.fetch_interval, page.fetch_time) == (3600, NOW + 3600_000)


@pytest.mark.parametrize("state", [base.UNKNOWN, base.MODIFIED, base.NOTMODIFIED])
def test_adaptive_keeps_fixed_interval(state: int) -> None:
    page = page_with(7200, b"3600")
    assert days_until_next(adaptive(), page, 300, state) == 3600 / DAY
    assert page.fetch_interval == 3600


@pytest.mark.parametrize("text", [b"soon", b"-5", b"0", b"inf", b"\xff"])
def test_malformed_fixed_interval_is_ignored(text: bytes) -> None:
    assert base.fixed_interval(page_with(10, text)) is None


@pytest.mark.parametrize(("offset", "due"), [(-1, True), (0, True), (1, False), (89 * DAY * 1000, False)])
def test_should_fetch_is_true_at_fetch_time(offset: int, due: bool) -> None:
    page = page_with(30 * DAY)
    page.fetch_time = NOW + offset
    assert DefaultFetchSchedule(Configuration()).should_fetch(URL, page, NOW) is due
    assert page.fetch_time == NOW + offset


def test_fetch_time_too_far_ahead_is_due_now() -> None:
    page = page_with(365 * DAY)
    page.fetch_time = NOW + 91 * DAY * 1000
    assert DefaultFetchSchedule(Configuration()).should_fetch(URL, page, NOW)
    assert (page.fetch_time, page.fetch_interval) == (NOW, 6998400)


def test_row_with_longer_former_maximum_waits_for_new_maximum() -> None:
    schedule, page = DefaultFetchSchedule(Configuration({"db.fetch.interval.max": str(7 * DAY)})), page_with(30 * DAY)
    page.fetch_time = NOW + 30 * DAY * 1000
    assert [schedule.should_fetch(URL, page, NOW + day * DAY * 1000) for day in (0, 3, 6)] == [False] * 3
    assert page.fetch_time == NOW + 30 * DAY * 1000
    assert schedule.should_fetch(URL, page, NOW + 7 * DAY * 1000)


def test_row_with_cut_interval_and_old_time_is_due_now() -> None:
    page = page_with(81 * DAY)
    page.fetch_time = NOW + 1000 * DAY * 1000
    assert DefaultFetchSchedule(Configuration()).should_fetch(URL, page, NOW)


def test_should_fetch_reads_only_declared_fields() -> None:
    schedule = DefaultFetchSchedule(Configuration())
    assert schedule.should_fetch(URL, WebPage({}, schedule.due_fields), NOW)


@pytest.mark.parametrize(("asap", "time"), [(True, NOW), (False, 5)])
def test_forced_refetch_makes_page_due(asap: bool, time: int) -> None:
    page = page_with(10**9)
    page.fetch_time, page.status, page.modified_time, page.retries_since_fetch = 5, CrawlStatus.FETCHED, 6, 2
    DefaultFetchSchedule(Configuration()).force_refetch(URL, page, asap, NOW)
    assert (page.fetch_time, page.fetch_interval, page.status) == (time, 6998400, CrawlStatus.UNFETCHED)
    assert (page.modified_time, page.retries_since_fetch) == (0, 0)


def test_adaptive_interval_stays_within_bounds() -> None:
    schedule = adaptive(min_interval=1000, max_interval=2000, sync_delta="false")
    days_until_next(schedule, page := page_with(1100), 0, base.MODIFIED)
    assert page.fetch_interval == 1000
    days_until_next(schedule, page := page_with(1900), 0, base.NOTMODIFIED)
    assert page.fetch_interval == 2000


def test_adaptive_sync_delta_moves_fetch_towards_change() -> None:
    page = page_with(10 * DAY)
    assert days_until_next(adaptive(sync_delta_rate=0.3), page, 5, base.UNKNOWN) == 10 - 1.5


def test_page_unchanged_for_long_is_not_due_immediately() -> None:
    schedule, page = adaptive(sync_delta_rate=0.3, max_interval=7 * DAY), page_with(7 * DAY)
    assert days_until_next(schedule, page, 3000, base.NOTMODIFIED) == pytest.approx(7 * 0.7)


def test_changed_page_is_modified_now() -> None:
    page = page_with(10 * DAY)
    assert days_until_next(adaptive(), page, 400, base.MODIFIED) == 8
    assert page.modified_time == NOW


@given(
    st.integers(0, 2**31 - 1),
    st.integers(-(10**12), 10**12),
    st.sampled_from([base.UNKNOWN, base.MODIFIED, base.NOTMODIFIED]),
    st.floats(0, 1),
)
def test_adaptive_never_leaves_bounds_for_any_input(interval: int, unchanged_ms: int, state: int, rate: float) -> None:
    schedule, page = adaptive(min_interval=60, max_interval=DAY, sync_delta_rate=rate), page_with(interval)
    schedule.set_fetch_schedule(URL, page, 0, 0, NOW, NOW - unchanged_ms, state)
    assert 60_000 <= page.fetch_time - NOW <= DAY * 1000
    assert 60 <= page.fetch_interval <= DAY


def test_per_host_bounds_are_applied(tmp_path: Path) -> None:
    (tmp_path / "adaptive-host-specific-intervals.txt").write_text(
        "# host min max\n\nwww.Example.com default 1000\nb.com 100 0\n"
    )
    schedule = adaptive(tmp_path)
    assert schedule.host_intervals.get_bounds(URL) == (60, 1000)
    assert schedule.host_intervals.get_bounds("http://b.com:8983/x") == (100, 365 * DAY)
    assert schedule.host_intervals.get_bounds("http://c.com/") == (60, 365 * DAY)
    days_until_next(schedule, page := page_with(5000), 0, base.UNKNOWN)
    assert page.fetch_interval == 1000


@pytest.mark.parametrize("line", ["a.com 10", "a.com x 10", "a.com 1 1000", "a.com 500 100", "a.com 100 99999999"])
def test_malformed_host_line_is_named_in_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "adaptive-host-specific-intervals.txt").write_text(f"# bounds\n{line}\n")
    with pytest.raises(ConfigurationError, match="line 2"):
        adaptive(tmp_path)


def test_contradictory_bounds_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="min_interval 100 is above max_interval 10"):
        adaptive(min_interval=100, max_interval=10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("db.fetch.interval.default", "0"),
        ("db.fetch.interval.default", "-1"),
        ("db.fetch.interval.max", "0"),
        (f"{ADAPTIVE}inc_rate", "-0.1"),
        (f"{ADAPTIVE}inc_rate", "inf"),
        (f"{ADAPTIVE}dec_rate", "1.1"),
        (f"{ADAPTIVE}dec_rate", "-0.1"),
        (f"{ADAPTIVE}sync_delta_rate", "1.01"),
        (f"{ADAPTIVE}sync_delta_rate", "nan"),
        (f"{ADAPTIVE}min_interval", "0"),
        (f"{ADAPTIVE}max_interval", "inf"),
        (f"{ADAPTIVE}min_interval", str(91 * DAY)),
    ],
)
def test_meaningless_values_are_rejected_by_name(name: str, value: str) -> None:
    conf = Configuration({name: value, "db.fetch.schedule.class": "AdaptiveFetchSchedule"})
    with pytest.raises(ConfigurationError, match=name.removeprefix(ADAPTIVE)):
        check_fetch_schedule(conf)


def test_host_interval_is_limited_by_maximum(tmp_path: Path) -> None:
    (tmp_path / "adaptive-host-specific-intervals.txt").write_text(f"a.com {91 * DAY} 0\n")
    with pytest.raises(ConfigurationError, match=r"is above db\.fetch\.interval\.max"):
        adaptive(tmp_path)


def test_rates_of_unused_schedule_are_not_checked() -> None:
    check_fetch_schedule(Configuration({f"{ADAPTIVE}dec_rate": "7"}))


def test_default_above_maximum_logs_warning(capsys: pytest.CaptureFixture[str]) -> None:
    check_fetch_schedule(Configuration({"db.fetch.interval.default": str(180 * DAY)}))
    assert "db.fetch.interval.default 15552000 is above db.fetch.interval.max 7776000" in capsys.readouterr().err
    check_fetch_schedule(Configuration())
    assert capsys.readouterr().err == ""
