"""The pictures of a crawl, of its job log, its figures and its overview."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nutch2py.charts.bar_chart import draw_bars
from nutch2py.charts.chart import Chart
from nutch2py.charts.gantt_chart import GanttBar, draw_gantt
from nutch2py.charts.line_chart import draw_lines
from nutch2py.charts.network_graph import GraphEdge, draw_graph
from nutch2py.charts.stacked_bars import Bar, HistogramBucket, draw_histogram, draw_stacked_bars
from nutch2py.control_room.round_stats import UNSUCCESSFUL_STATES, Round, finish_time, sum_counters
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.fetcher.stats.fetch_histogram import SIZES_GROUP, TIMES_GROUP, list_buckets
from nutch2py.joblog.crawl_overview import Histogram, Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import TableStats
from nutch2py.support.formatting import format_bytes, format_compact, format_duration, format_number

NO_JOB_LOG_MESSAGE = "No job has been logged yet: this picture begins with the next one."
NO_OVERVIEW_MESSAGE = "No job has looked at every row yet: nutch2py updatehostdb -linkDb does."
OUTCOMES = ("fetched", "redirected", "gone or forbidden", "failed")
JOB_STATE_COLOURS = {
    JobState.RUNNING: 2,
    JobState.FINISHED: 1,
    JobState.STOPPED: 3,
    JobState.FAILED: 4,
    JobState.KILLED: 4,
}
"""Colours of jobs."""
FETCHED_STATUSES = ("status_fetched", "status_notmodified")
REDIRECT_STATUSES = ("status_redir_temp", "status_redir_perm")
PENDING_STATUSES = ("status_unfetched", "null", "status_retry")
_FAILURE_LABELS: dict[str, str] = {
    FailureKind.DNS: "host name unknown",
    FailureKind.REFUSED: "connection refused",
    FailureKind.CONNECT: "no connection",
    FailureKind.SOCKET: "no socket to ask by",
    FailureKind.TIMEOUT: "no answer in time",
    FailureKind.CLOSED: "connection closed",
    FailureKind.PROTOCOL: "answer is no HTTP",
    FailureKind.TLS: "certificate or TLS",
    FailureKind.ADDRESS_FILTER: "address is excluded",
    FailureKind.LIMIT: "beyond a limit",
    FailureKind.URL: "malformed URL",
    FailureKind.SCHEME: "unknown protocol",
    FailureKind.ROBOTS: "robots.txt unreadable",
    FailureKind.BROWSER: "not rendered",
    FailureKind.OTHER: "other failures",
    "http": "error of the server (5xx)",
}
_JOB_LANES = ("inject", "generate", "fetch", "parse", "updatedb", "index")
_STATUS_LABELS = {
    "NOTFOUND": "not found (404)",
    "GONE": "gone (410, 400)",
    "ACCESS_DENIED": "needs a login (401)",
    "ROBOTS_DENIED": "denied by robots.txt",
}


class _HistogramStyle(NamedTuple):
    title: str
    format_value: Callable[[float], str] = format_compact


def _format_seconds(seconds: float) -> str:
    return format_duration(1000 * seconds)


_HISTOGRAMS: dict[str, _HistogramStyle] = {
    "depth": _HistogramStyle("Links from a seed", format_number),
    "score": _HistogramStyle("Score"),
    "pagerank": _HistogramStyle("PageRank"),
    "interval": _HistogramStyle("Time between two fetches", _format_seconds),
}


_RESPONSE_HISTOGRAMS = (
    (TIMES_GROUP, "Time to an answer", format_duration),
    (SIZES_GROUP, "Size of an answer", format_bytes),
)
"""Groups of counters with a distribution (:mod:`nutch2py.fetcher.stats.fetch_histogram`), and how they are drawn."""


def count_statuses(status: Mapping[str, int], names: Sequence[str]) -> int:
    """Return how many rows have one of some statuses."""
    return sum(status.get(name, 0) for name in names)


def status_breakdown(status: Mapping[str, int], rows: int) -> list[int]:
    """Return how many rows are fetched, redirected, gone and waiting; of what other statuses there are: waiting."""
    good, moved, gone = (
        count_statuses(status, FETCHED_STATUSES),
        count_statuses(status, REDIRECT_STATUSES),
        status.get("status_gone", 0),
    )
    return [good, moved, gone, max(rows - good - moved - gone, 0)]


def draw_pages_over_time(entries: Sequence[JobEntry], now: TableStats | None) -> Chart:
    """Return how many pages the table had, and how many of them were fetched, after each job."""
    known = [entry.table_stats for entry in entries if entry.table_stats is not None] + ([now] if now else [])
    points = {figures.counted_at: (figures.rows, count_statuses(figures.status, FETCHED_STATUSES)) for figures in known}
    return draw_lines("Pages over time", ("known", "fetched"), [*points.items()], NO_JOB_LOG_MESSAGE)


def draw_round_outcomes(rounds: Sequence[Round]) -> Chart:
    """Return what came of the URLs of each round."""
    found = []
    for each in rounds:
        tally = each.totals
        found.append(
            Bar(str(each.number), [tally.fetched_count, tally.redirected_count, tally.gone_count, tally.failed_count])
        )
    return draw_stacked_bars("What came of each round", OUTCOMES, found, "No round has fetched anything yet.")


def draw_fetch_errors(entries: Sequence[JobEntry]) -> Chart:
    """Return why URLs were not fetched, by kind."""
    tally = sum_counters(entries)
    kinds = Counter({_STATUS_LABELS[name]: tally.get_fetch_counter(name) for name in _STATUS_LABELS})
    for kind, count in tally.count_failures_by_kind().items():
        kinds[_FAILURE_LABELS.get(kind, kind)] += count
    none = "No fetch has failed." if tally.fetched_count else "No round has fetched anything yet."
    return draw_bars(
        "Why URLs were not fetched", ("URLs",), [Bar(*each) for each in _nonzero(kinds)], none, colours=(4,)
    )


def _nonzero(counts: Mapping[str, int]) -> Iterator[tuple[str, list[float]]]:
    return ((name, [float(count)]) for name, count in counts.items() if count)


def draw_response_histograms(entries: Sequence[JobEntry]) -> list[Chart]:
    """Return how long the answers of fetches took, and how many bytes they had, of all that the entries tell of."""
    return [_draw_response_histogram(entries, *each) for each in _RESPONSE_HISTOGRAMS]


def _draw_response_histogram(
    entries: Sequence[JobEntry], group: str, title: str, shown: Callable[[float], str]
) -> Chart:
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry.counters.get(group, {}))
    found = list_buckets(counts)
    lows = [0.0, *(bound for bound, _ in found[:-1])]
    spans = [HistogramBucket(low, high, number) for low, (high, number) in zip(lows, found, strict=True)]
    return draw_histogram(title, spans, "No fetch that was logged has had an answer.", shown, "answers")


def draw_job_timeline(entries: Sequence[JobEntry]) -> Chart:
    """Return the jobs over time, a lane for each command."""
    works = [
        GanttBar(
            entry.job, entry.start_time, finish_time(entry), JOB_STATE_COLOURS[entry.state], _job_description(entry)
        )
        for entry in sorted(entries, key=lambda entry: entry.id)
    ]
    used = {entry.state for entry in entries}
    legend = [(1, "finished")] if JobState.FINISHED in used else []
    legend += [(2, "running")] if JobState.RUNNING in used else []
    legend += [(3, "stopped")] if JobState.STOPPED in used else []
    legend += [(4, "failed or killed")] if used & {JobState.FAILED, JobState.KILLED} else []
    return draw_gantt("Jobs over time", works, NO_JOB_LOG_MESSAGE, legend, _JOB_LANES)


def _job_description(entry: JobEntry) -> str:
    of = f" {entry.batch_id}" if entry.batch_id else ""
    why = f": {entry.message}" if entry.message and entry.state in UNSUCCESSFUL_STATES else ""
    return f"{entry.job}{of}, {entry.state}{why}, {format_duration(finish_time(entry) - entry.start_time)}"


def draw_top_hosts(overview: Overview | None) -> Chart:
    """Return the hosts with the most pages."""
    rows = [Bar(each.host, status_breakdown(each.status, each.rows)) for each in overview.hosts] if overview else []
    names = ("fetched", "redirected", "gone", "not fetched yet")
    return draw_bars("Hosts with the most pages", names, rows, NO_OVERVIEW_MESSAGE, colours=(1, 2, 4, 3))


def draw_host_links(overview: Overview | None) -> Chart:
    """Return which hosts link to which."""
    edges = [GraphEdge(each.source, each.target, each.links) for each in overview.edges] if overview else []
    sizes = {each.host: each.rows for each in overview.hosts} if overview else {}
    counted = any(each.inlinks is not None for each in overview.hosts) if overview else False
    yet = "No links between hosts have been counted yet: nutch2py updatehostdb -linkDb does."
    none = "No host links to another." if counted else yet
    return draw_graph("Links between hosts", edges, sizes, none)


def draw_histograms(overview: Overview | None) -> list[Chart]:
    """Return a histogram of each number that the overview has."""
    found = dict(overview.histograms) if overview else {}
    order = [*(name for name in _HISTOGRAMS if name in found), *sorted(found.keys() - _HISTOGRAMS.keys())]
    return [_draw_histogram(name, found[name]) for name in order if any(found[name].counts)]


def _draw_histogram(name: str, spread: Histogram) -> Chart:
    kind = _HISTOGRAMS.get(name, _HistogramStyle(name.replace("_", " ").capitalize()))
    highs = [*spread.bounds[1:], math.inf]
    buckets = [HistogramBucket(*each) for each in zip(spread.bounds, highs, spread.counts, strict=True)]
    return draw_histogram(kind.title, buckets, "No page has this number.", kind.format_value)
