"""``nutch2py report``: the state of a crawl as one self-contained HTML file, or as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from nutch2py.charts.chart import Chart, read_stylesheet
from nutch2py.conf.configuration import Configuration
from nutch2py.control_room import activity, crawl_charts, crawl_status
from nutch2py.control_room.round_stats import Round, group_rounds
from nutch2py.control_room.templates import read_asset, render_template
from nutch2py.control_room.text_summary import summarize_crawl
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.joblog.table_stats import ScoreSummary, TableStats
from nutch2py.jobs.locking.lock_scopes import CHANGING_JOBS
from nutch2py.jobs.monitoring.skip_reasons import SkippedUrls, iter_skipped_urls, sum_recent_counters
from nutch2py.support.atomic_files import atomic_write
from nutch2py.support.formatting import format_time

if TYPE_CHECKING:
    from nutch2py.crawl_reader import CrawlReader

MAX_REPORT_ENTRIES = 2000
"""Newest job log entries that charts show."""


@dataclass
class CrawlSnapshot:
    """State of a crawl, read without a table scan. ``entries``: newest first. ``skipped``: of the last 24 hours."""

    name: str
    time: int
    table_stats: TableStats | None
    overview: Overview | None
    entries: list[JobEntry]
    skipped: list[SkippedUrls] = field(default_factory=list)

    @classmethod
    def from_crawl(cls, crawl: CrawlReader, entries: int = MAX_REPORT_ENTRIES) -> CrawlSnapshot:
        """Read the state with at most ``entries`` of the newest job log entries."""
        name = crawl.conf.get_trimmed("storage.crawl.id")
        now = int(time.time() * 1000)
        log = crawl.jobs(entries)
        skipped = [*iter_skipped_urls(sum_recent_counters(log), run_configuration(crawl.conf, log))]
        return cls(name, now, crawl.table_stats(), crawl.overview(), log, skipped)

    @cached_property
    def rounds(self) -> list[Round]:
        """The rounds, oldest first."""
        return group_rounds(self.entries)

    def charts(self) -> Iterator[Chart]:
        """Yield the charts that both the control room and the report show first."""
        yield crawl_charts.draw_throughput(self.entries)
        yield crawl_charts.draw_errors_over_time(self.entries)
        yield crawl_charts.draw_pages_over_time(self.entries, self.table_stats)
        yield crawl_charts.draw_round_outcomes(self.rounds)
        yield crawl_charts.draw_fetch_errors(self.entries)
        yield from crawl_charts.draw_response_histograms(self.entries)


def run_configuration(conf: Configuration, entries: Sequence[JobEntry], job: str = "") -> Configuration:
    """Return the configuration that the newest job, or the newest ``job``, ran with; ``conf`` if none is known.

    Args:
        conf: The configuration of the reader, which may differ.
        entries: The job log, newest first.
        job: Name of the job, "" for any that changes the crawl.
    """
    for entry in entries:
        if entry.properties is not None and (entry.job == job if job else entry.job in CHANGING_JOBS):
            return Configuration.from_site_properties(entry.properties, conf)
    return conf


def render_report(state: CrawlSnapshot) -> str:
    """Return the report as a complete HTML document."""
    rounds = state.rounds
    return render_template(
        "report.html",
        crawl=state.name,
        time=format_time(state.time),
        style=read_stylesheet() + read_asset("control_room.css"),
        summary=[*summarize_crawl(state.table_stats, state.overview, rounds, state.entries)],
        charts=[
            *state.charts(),
            crawl_charts.draw_coverage(rounds),
            crawl_charts.draw_frontier(state.entries, state.table_stats),
            crawl_charts.draw_round_durations(rounds),
            crawl_charts.draw_top_hosts(state.overview),
            *crawl_charts.draw_page_kinds(state.overview),
            *crawl_charts.draw_histograms(state.overview),
        ],
        wide_charts=[crawl_charts.draw_job_timeline(state.entries), crawl_charts.draw_host_links(state.overview)],
        state=crawl_status.crawl_state(state.entries),
        key_numbers=[*crawl_status.key_numbers(state.table_stats, state.overview, rounds, state.entries)],
        attention=crawl_status.find_attention(state.entries, state.skipped),
        estimate=crawl_status.estimate_frontier(state.table_stats, rounds),
        failing=activity.count_failing_hosts(state.entries),
        slow_hosts=activity.find_slow_hosts(state.entries),
        rounds=rounds[-30:][::-1],
        skipped=state.skipped,
        overview_time=None if state.overview is None else format_time(state.overview.counted_at),
    )


def report_data(state: CrawlSnapshot) -> dict[str, object]:
    """Return the report as values that are written as JSON."""
    return {
        "crawl": state.name,
        "time": state.time,
        "summary": [*summarize_crawl(state.table_stats, state.overview, state.rounds, state.entries)],
        "table_stats": state.table_stats,
        "overview": state.overview,
        "skipped": [_skipped_data(each) for each in state.skipped],
        "rounds": [_round_data(each) for each in state.rounds],
        "estimate": crawl_status.estimate_frontier(state.table_stats, state.rounds),
        "failing_hosts": [each._asdict() for each in activity.count_failing_hosts(state.entries).hosts],
        "slow_hosts": [each._asdict() for each in activity.find_slow_hosts(state.entries)],
        "jobs": state.entries,
    }


def _round_data(each: Round) -> dict[str, object]:
    totals = each.totals
    links, new_links = totals.link_counts
    return {
        "number": each.number,
        "batch_id": each.batch_id,
        "start_time": each.start_time,
        "finish_time": each.finish_time,
        "is_running": each.is_running,
        "generated": each.generated_count,
        "fetched": totals.fetched_count,
        "redirected": totals.redirected_count,
        "gone": totals.gone_count,
        "failed": totals.unsuccessful_count,
        "not_fetched": each.pending_count,
        "bytes": totals.downloaded_bytes,
        "links": links,
        "new_links": new_links,
    }


def _skipped_data(each: SkippedUrls) -> dict[str, object]:
    reason = each.reason
    return {"count": each.number, "reason": reason.description, "action": reason.remedy, "hosts": dict(each.hosts)}


def render_json(state: CrawlSnapshot) -> str:
    """Return :func:`report_data` as one line of JSON."""
    return orjson.dumps(report_data(state), default=_json_default).decode()


def _json_default(value: object) -> object:
    if isinstance(value, ScoreSummary):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} is not JSON")


def write_report(state: CrawlSnapshot, path: Path) -> None:
    """Write the report; an existing file is replaced atomically."""
    text = render_report(state).encode()
    with atomic_write(path) as out:
        out.write(text)
