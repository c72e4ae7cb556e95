"""Status line, attention list, failing hosts and estimates of the control room, from a simulated job log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nutch2py.control_room import activity
from nutch2py.control_room.crawl_charts import draw_errors_over_time, draw_round_durations
from nutch2py.control_room.crawl_status import crawl_state, estimate_frontier, find_attention, key_numbers
from nutch2py.control_room.round_stats import OTHER_TIME, group_rounds
from nutch2py.control_room.templates import render_template
from nutch2py.fetcher.queues.queue_state import QueueState
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import TableStats
from nutch2py.jobs.monitoring.skip_reasons import SkippedUrls, SkipReason
from tests.control_room.simulated_job_log import BEGAN, MINUTE, entry

HOUR = 60 * MINUTE


def fetch(start: int, minutes: float = 1, batch: str = "b", **counters: dict[str, int]) -> JobEntry:
    return entry("fetch", batch, start, minutes, counters=counters)


def stats(rows: int, fetched: int) -> TableStats:
    return TableStats(BEGAN, rows, {"status_fetched": fetched, "status_unfetched": rows - fetched})


@pytest.mark.parametrize(
    ("done", "found", "expected"),
    [
        (60, 0, "about 1 min 30 s are left at this rate"),
        (60, 59, "about 1 h 30 min are left"),
        (60, 60, "the frontier grows, so the end cannot be estimated"),
    ],
)
def test_remaining_time_is_estimated_only_for_shrinking_frontier(done: int, found: int, expected: str) -> None:
    job = fetch(BEGAN, FetcherStatus={"SUCCESS": done}, updatedb={"rows_new": found})
    assert expected in estimate_frontier(stats(150, 60), group_rounds([job]))


def test_estimate_names_missing_data_and_empty_frontier() -> None:
    job = fetch(BEGAN, FetcherStatus={"SUCCESS": 60})
    assert "No estimate" in estimate_frontier(None, group_rounds([job]))
    assert "No estimate" in estimate_frontier(stats(9, 0), [])
    assert "the frontier is empty" in estimate_frontier(stats(60, 60), group_rounds([job]))


def test_time_of_round_is_split_by_job() -> None:
    jobs = [
        entry("generate", "b", BEGAN, 1, counters={"generator": {"generated": 9}}),
        entry("fetch", "b", BEGAN + 2 * MINUTE, 3),
        entry("updatehostdb", "b", BEGAN + 4 * MINUTE, 2),  # one minute of it in parallel with fetch
    ]
    (only,) = group_rounds(jobs)
    assert only.durations_by_job() == {"generate": MINUTE, "fetch": 3 * MINUTE, OTHER_TIME: 2 * MINUTE}
    chart = draw_round_durations([only])
    assert chart.y_title == "minutes"
    assert chart.table.rows == [["1", "1", "3", "0", "0", "0", "2"]]


def test_range_selects_jobs_that_ran_in_it() -> None:
    now = BEGAN + 3 * HOUR
    log = [fetch(BEGAN + 150 * MINUTE), fetch(BEGAN + HOUR, 61), fetch(BEGAN)]
    chosen = activity.Activity.from_entries(log, activity.find_range("1h"), now)
    assert chosen.entries == log[:2]
    assert chosen.span == chosen.fetch_span == (now - HOUR, BEGAN + 151 * MINUTE)
    fetched = replace(log[1], counters={"FetcherStatus": {"SUCCESS": 1}})
    chosen = activity.Activity.from_entries([log[0], fetched], activity.find_range("all"), now)
    assert (chosen.span, chosen.fetch_span) == (
        (BEGAN + HOUR, BEGAN + 151 * MINUTE),
        (BEGAN + HOUR, BEGAN + 121 * MINUTE),
    )
    assert activity.Activity.from_entries(log, activity.find_range("all"), now).entries == log
    assert activity.Activity.from_entries(log, activity.find_range("1h"), now + 9 * HOUR) == ([], None, None)
    assert activity.find_range("<b>").name == "24h"


def test_failing_hosts_are_counted_by_reason_with_remedy() -> None:
    log = [
        fetch(BEGAN, fetch_hosts={"http_503 slow.example": 4, "timeout slow.example": 1, "NOTFOUND old.example": 3}),
        fetch(BEGAN + HOUR, fetch_hosts={"http_503 slow.example": 2, "HostHeld slow.example": 5}),
    ]
    found = activity.count_failing_hosts(log)
    assert found.labels == ["HTTP 503", "deferred", "not found (404)", "timeout"]
    slow, old = found.hosts
    assert (slow.host, slow.total, [*found.cells(slow)]) == ("slow.example", 12, [(6, 2), (5, 2), (0, 0), (1, 1)])
    assert "fetcher.server.delay" in slow.remedy
    assert "do not exist" in old.remedy


def test_host_has_its_failures_and_queue() -> None:
    log = [fetch(BEGAN, fetch_hosts={"http_503 slow.example": 4, "timeout slow.example": 9, "NOTFOUND old.example": 3})]
    assert [each[:2] for each in activity.find_host_failures(log, "slow.example")] == [("timeout", 9), ("HTTP 503", 4)]
    assert activity.find_host_failures(log, "other.example") == []
    queue = QueueState("slow.example", 4, 1, 5000, BEGAN, "request in progress")
    running = replace(log[0], state=JobState.RUNNING, queues=(queue,))
    assert activity.find_queue([running], "slow.example") == (running, queue)
    assert activity.find_queue([running], "old.example") is None
    assert activity.find_queue([replace(running, state=JobState.KILLED)], "slow.example") is None


def test_failing_hosts_and_reasons_are_bounded() -> None:
    counts = {f"http_{500 + number % 20} h{number}.example": number + 1 for number in range(100)}
    found = activity.count_failing_hosts([fetch(BEGAN, fetch_hosts=counts)])
    assert (len(found.hosts), found.host_count, len(found.labels), found.labels[-1]) == (20, 100, 7, "other")
    assert all(sum(count for count, _ in found.cells(host)) == host.total for host in found.hosts)


def test_errors_beyond_most_frequent_reasons_are_summed() -> None:
    kinds = ("timeout", "tls", "closed", "dns", "connection_refused", "protocol", "limit")
    failures = {f"exception_{kind}": 10 * number for number, kind in enumerate(kinds, 1)}
    chart = draw_errors_over_time([fetch(BEGAN, FetcherStatus={"EXCEPTION": 280, **failures})])
    assert [name for _, name in chart.legend][-1] == "other reasons"
    assert sum(map(int, chart.table.rows[0][2:])) == 280


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((JobState.FINISHED, JobState.RUNNING), "running"),
        ((JobState.FINISHED, JobState.FAILED), "idle"),
        ((JobState.KILLED, JobState.FINISHED), "killed"),
        ((), "idle"),
    ],
)
def test_state_is_that_of_running_or_last_job(states: tuple[JobState, ...], expected: str) -> None:
    log = [replace(fetch(BEGAN - number * HOUR), state=state) for number, state in enumerate(states)]
    assert crawl_state(log) == expected


def test_attention_lists_failed_job_before_fixable_reasons() -> None:
    skipped = [
        SkippedUrls(9, SkipReason("URLs not found (404)")),
        SkippedUrls(2, SkipReason("seeds rejected", "nutch2py filterchecker", is_fixable=True)),
        SkippedUrls(5, SkipReason("URLs disallowed", "http.agent.name", is_fixable=True), (("a.example", 5),)),
    ]
    failed = replace(fetch(BEGAN), state=JobState.FAILED, message="the disk is full")
    found = find_attention([failed], skipped)
    assert [each.message for each in found] == [
        "The last job, fetch, failed", "5 URLs disallowed: a.example (5)", "2 seeds rejected"
    ]  # fmt: skip
    assert [each.is_error for each in found] == [True, False, False]
    assert found[0].job_id == failed.id
    assert find_attention([fetch(BEGAN)], skipped[:1]) == []


def test_key_numbers_are_those_of_last_fetch_with_result() -> None:
    log = [
        replace(fetch(BEGAN + HOUR, batch="c"), state=JobState.RUNNING, finish_time=None),
        fetch(BEGAN, 2, FetcherStatus={"SUCCESS": 60, "EXCEPTION": 4}),
    ]
    found = {
        each.label: (each.value, each.detail) for each in key_numbers(stats(150, 60), None, group_rounds(log), log)
    }
    assert found["Pages"][0] == "150"
    assert (found["Fetched"], found["Not fetched yet"]) == (("60", "40 %"), ("90", "60 %"))
    assert found["URLs per minute"] == ("32", "last fetch")
    assert found["Failed"] == ("4", "of 64 URLs, last round")
    assert [*key_numbers(None, None, [], [])] == []


def test_each_cell_of_list_has_header_of_its_column() -> None:
    values: dict[str, Any] = {"quality": None, "rounds": group_rounds([fetch(BEGAN, FetcherStatus={"SUCCESS": 3})])}
    page = render_template("rounds_table.html", **values)
    assert '<td data-label="Fetched">3</td>' in page
    assert page.count("data-label=") == page.count("<td") + 1 == 12
