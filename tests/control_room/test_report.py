"""The report: a self-contained file that marks unknown values and escapes malicious names."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.control_room import crawl_charts
from nutch2py.control_room.report import CrawlSnapshot, render_report, report_data, write_report
from nutch2py.control_room.round_stats import group_rounds, remaining_ms, rows_per_second
from nutch2py.control_room.text_summary import summarize_crawl
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.joblog.crawl_overview import HostEdge, HostSummary, Overview
from nutch2py.joblog.job_entry import JobState
from nutch2py.jobs.monitoring.skip_reasons import SkippedUrls, SkipReason
from tests.charts.chrome import OUT_OF_REACH, OVERLAPS, VIEWS, axe, chrome, faults, open_page, save, too_wide
from tests.charts.samples import HOSTILE
from tests.control_room.simulated_job_log import BEGAN, MINUTE, entries, entry, overview
from tests.jobs.rows import put

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["axe", "chrome"]
MADE = BEGAN + 10_000 * MINUTE


def simulated(count: int = 120) -> CrawlSnapshot:
    made = entries(count)
    return CrawlSnapshot("news", MADE, made[1].table_stats, overview(), made)


def hostile() -> CrawlSnapshot:
    """Return a crawl with a malicious value in every field."""
    made = [
        replace(each, batch_id=bad, message=bad, host=bad, user=bad, job=bad[:40] or "fetch")
        for each, bad in zip(entries(40), HOSTILE * 5, strict=False)
    ]
    seen = Overview(
        MADE,
        tuple(HostSummary(bad, 9, 4, 1, {bad: 3}) for bad in HOSTILE),
        8,
        tuple(HostEdge(bad, other, 7) for bad in HOSTILE for other in HOSTILE),
        {HOSTILE[0]: overview().histograms["depth"]},
    )
    return CrawlSnapshot(HOSTILE[0], MADE, made[1].table_stats, seen, made)


NOTHING = CrawlSnapshot("", MADE, None, None, [])


@pytest.mark.parametrize(("made", "name"), [(simulated, "much"), (hostile, "hostile"), (lambda: NOTHING, "nothing")])
@pytest.mark.parametrize("number", range(2))
def test_report_renders_in_browser(
    chrome: Browser, axe: str, tmp_path: Path, number: int, made: object, name: str
) -> None:
    assert callable(made)
    size, scheme = VIEWS[number if name == "hostile" else 3 * number]
    path = tmp_path / "report.html"
    write_report(made(), path)
    with open_page(chrome, size, scheme) as page:
        page.goto(path.as_uri())
        save(page, f"report-{name}-{size}-{scheme}", os.environ.get("NUTCH2PY_SCREENSHOTS"))
        assert page.evaluate(OVERLAPS) == []
        assert too_wide(page) == 0
        assert page.evaluate(OUT_OF_REACH) == []
        assert faults(page, axe) == []
        assert "ran" not in page.title().split()
        assert page.console_lines == []  # type: ignore[attr-defined]
        assert page.requested_urls == [path.as_uri()]  # type: ignore[attr-defined]


def test_report_summary_and_values_agree(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(conf, {f"http://a.test/{number}": {"status": 2 if number else 1} for number in range(4)})
    store = f"storage.data.store={conf.get('storage.data.store')}"
    target = tmp_path / "out.html"
    target.write_text("an older one")
    assert main(["report", "-o", str(target), "-D", store]) == 0
    assert capsys.readouterr().out == f"report: {target}\n"
    assert main(["report", "-json", "-D", store]) == 0
    report = orjson.loads(capsys.readouterr().out)
    assert report["table_stats"]["rows"] == 4
    assert report["summary"][0] == "4 pages, 75 % fetched."
    shown = target.read_text("utf-8")
    assert all(f"<p>{sentence}</p>" in shown for sentence in report["summary"])
    assert not list(tmp_path.glob(".out*"))


def test_report_shows_hosts_in_unicode_unless_they_could_deceive() -> None:
    names = ("xn--mnchen-3ya.de", "xn--80ak6aa92e.com")
    hosts = tuple(HostSummary(name, 2, 1, 0, {"status_fetched": 1}) for name in names)
    state = replace(
        NOTHING,
        skipped=[SkippedUrls(5, SkipReason("were refused", "http.timeout"), tuple((name, 3) for name in names))],
        overview=Overview(BEGAN, hosts, 2, (HostEdge(*names, 7),)),
    )
    shown = render_report(state)
    assert shown.count("münchen.de") >= 3
    assert names[0] not in shown
    assert shown.count(names[1]) >= 3


def test_report_skipped_pages_are_listed_and_escaped() -> None:
    hosts = (*((name, 3) for name in HOSTILE), ("<script>ran</script>", 2))
    state = replace(NOTHING, skipped=[SkippedUrls(5, SkipReason("were <i>refused</i>", "http.timeout"), hosts)])
    shown = render_report(state)
    assert "were &lt;i&gt;refused&lt;/i&gt;" in shown
    assert "http.timeout" in shown
    assert "<script" not in shown
    assert report_data(state)["skipped"] == [
        {"count": 5, "reason": "were <i>refused</i>", "action": "http.timeout", "hosts": dict(hosts)}
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 255, "no output given: name a file with -o, or print the report with -json"),
        (["-o", "none/report.html"], 4, "No such file or directory: name a file that you can write"),
        (["-o", "."], 4, "it is a folder: name a file that you can write"),
    ],
)
def test_unwritable_report_path_is_named_in_error(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], code: int, message: str,
) -> None:  # fmt: skip
    put(conf, {"http://a.test/": {}})
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments, "-D", f"storage.data.store={conf.get('storage.data.store')}"]) == code
    assert capsys.readouterr().err.rstrip().endswith(message)


def test_missing_crawl_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-json", "-D", f"storage.data.store=embedded:{tmp_path}/none"]) == 4
    assert not list(tmp_path.iterdir())


def test_unknown_value_names_command_to_compute_it() -> None:
    shown = render_report(NOTHING)
    assert "<svg" not in shown
    for message in (
        crawl_charts.NO_JOB_LOG_MESSAGE,
        crawl_charts.NO_OVERVIEW_MESSAGE,
        "run nutch2py readdb -stats",
    ):
        assert message in shown


def test_rounds_are_summarized() -> None:
    jobs = [
        entry("inject", "", BEGAN, 1),
        entry("generate", "b1", BEGAN + MINUTE, 1, counters={"generator": {"generated": 7}}),
        entry("fetch", "-all", BEGAN + 2 * MINUTE, 1, counters={"FetcherStatus": {"SUCCESS": 5, "EXCEPTION": 2}}),
        entry("parse", "b1", BEGAN + 3 * MINUTE, 1, state=JobState.KILLED, finish_time=None),
        entry("pagerank", "", BEGAN + 4 * MINUTE, 1),
        entry("generate", "b2", BEGAN + 5 * MINUTE, 1, counters={"generator": {"generated": 180}}),
        entry("fetch", "b2", BEGAN + 6 * MINUTE, 1, state=JobState.RUNNING, finish_time=None, rows=60, expected=180),
    ]
    first, second = group_rounds(jobs[::-1])
    assert [each.job for each in first.entries] == ["generate", "fetch", "parse"]
    assert (
        first.number,
        first.generated_count,
        first.totals.fetched_count,
        first.totals.failed_count,
        first.has_failed,
    ) == (1, 7, 5, 2, True)
    assert (second.number, second.is_running, second.start_time, second.finish_time) == (
        2,
        True,
        BEGAN + 5 * MINUTE,
        BEGAN + 7 * MINUTE,
    )
    assert (rows_per_second(jobs[-1]), remaining_ms(jobs[-1]), remaining_ms(jobs[1])) == (1.0, 120_000, None)
    sentences = [*summarize_crawl(None, None, [first, second], jobs[::-1])]
    assert sentences[1] == "2 rounds in 6 min: 5 fetched, 2 failed."
    assert sentences[2].startswith("Running: fetch of batch b2, since ")
    assert sentences[2].endswith(": 60 of 180 rows, 1 rows/s, about 2 min remaining.")
    assert [*summarize_crawl(None, None, [], [jobs[3]])][1].startswith(
        "The last job, parse of batch b1, was killed at "
    )


def test_generate_without_result_adds_no_round() -> None:
    jobs = [entry("generate", "b1", BEGAN, 1), entry("index", "-all", BEGAN + MINUTE, 1)]
    assert group_rounds(jobs) == []
    failed = entry("generate", "b2", BEGAN, 1, state=JobState.FAILED)
    assert [each.number for each in group_rounds([*jobs, failed])] == [1]


def test_single_host_has_no_host_links() -> None:
    seen = Overview(MADE, (HostSummary("a.test", 3, 3, 0, {"status_fetched": 3}, 0, 0),), 1)
    assert crawl_charts.draw_host_links(seen).description == "No host links to another host."


def test_every_failure_and_state_has_label_and_colour() -> None:
    assert set(crawl_charts.FAILURE_LABELS) == {*FailureKind}
    assert set(crawl_charts.JOB_STATE_COLOURS) == set(JobState)
