"""Charts of a crawl: from its job log, table statistics and overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nutch2py.charts.bar_chart import draw_bars
from nutch2py.charts.chart import Chart
from nutch2py.charts.gantt_chart import GanttBar, draw_gantt
from nutch2py.charts.line_chart import draw_lines
from nutch2py.charts.network_graph import GraphEdge, draw_graph
from nutch2py.charts.stacked_bars import Bar, draw_histogram, draw_stacked_bars
from nutch2py.control_room.round_stats import UNSUCCESSFUL_STATES, Round, finish_time, sum_counters
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.fetcher.stats.host_failures import HTTP_GROUP
from nutch2py.fetcher.stats.response_histograms import SIZES_GROUP, TIMES_GROUP, from_job_counters
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import TableStats
from nutch2py.support.formatting import format_bytes, format_compact, format_duration, format_number
from nutch2py.support.histogram import Histogram
from nutch2py.url.display_url import display_host

NO_JOB_LOG_MESSAGE = "No job in the log yet: the next job adds data."
_NO_FETCH_MESSAGE = "No round has fetched a page yet."
NO_OVERVIEW_MESSAGE = "No full table scan yet: run nutch2py updatehostdb -linkDb."
OUTCOMES = ("fetched", "redirected", "gone or forbidden", "failed")
JOB_STATE_COLOURS = {
    JobState.RUNNING: 2,
    JobState.FINISHED: 1,
    JobState.STOPPED: 3,
    JobState.FAILED: 4,
    JobState.KILLED: 4,
}
"""Colour classes of jobs by state."""
FETCHED_STATUSES = ("status_fetched", "status_notmodified")
REDIRECT_STATUSES = ("status_redir_temp", "status_redir_perm")
PENDING_STATUSES = ("status_unfetched", "null", "status_retry")
FAILURE_LABELS: dict[str, str] = {
    FailureKind.DNS: "DNS failure",
    FailureKind.REFUSED: "connection refused",
    FailureKind.CONNECT: "connection failed",
    FailureKind.DNS_UNAVAILABLE: "no DNS server",
    FailureKind.NETWORK: "no network route",
    FailureKind.PROXY: "proxy failed",
    FailureKind.TLS_SETUP: "TLS set-up",
    FailureKind.PROTOCOL_DISABLED: "protocol disabled",
    FailureKind.DISK: "disk error",
    FailureKind.SOCKET: "no socket available",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.CLOSED: "connection closed",
    FailureKind.PROTOCOL: "invalid HTTP response",
    FailureKind.TLS: "TLS error",
    FailureKind.ADDRESS_FILTER: "address excluded",
    FailureKind.LIMIT: "limit exceeded",
    FailureKind.URL: "malformed URL",
    FailureKind.SCHEME: "unknown protocol",
    FailureKind.ROBOTS: "robots.txt unreadable",
    FailureKind.BROWSER: "rendering failed",
    FailureKind.OTHER: "other failures",
}
"""Labels of the kinds of failures in the charts."""
_HTTP_LABELS = {"403": "forbidden (403)", "429": "too many requests (429)"}
_JOB_LANES = ("inject", "generate", "fetch", "parse", "updatedb", "index")
_STATUS_LABELS = {
    "NOTFOUND": "not found (404)",
    "GONE": "gone (410, 400)",
    "ACCESS_DENIED": "login required (401)",
    "ROBOTS_DENIED": "denied by robots.txt",
    "ROBOTS_DENIED_MAXCRAWLDELAY": "crawl delay too long",
}


class _HistogramStyle(NamedTuple):
    title: str
    format_value: Callable[[float], str] = format_compact


def _format_seconds(seconds: float) -> str:
    return format_duration(1000 * seconds)


_HISTOGRAMS: dict[str, _HistogramStyle] = {
    "depth": _HistogramStyle("Depth", format_number),
    "score": _HistogramStyle("Score"),
    "pagerank": _HistogramStyle("PageRank"),
    "interval": _HistogramStyle("Fetch interval", _format_seconds),
}


_RESPONSE_HISTOGRAMS = (
    (TIMES_GROUP, "Response time", format_duration),
    (SIZES_GROUP, "Response size", format_bytes),
)
"""Counter groups with a histogram (:mod:`nutch2py.fetcher.stats.response_histograms`): group, title, value format."""


def count_statuses(status: Mapping[str, int], names: Sequence[str]) -> int:
    """Return the number of rows with one of the statuses ``names``."""
    return sum(status.get(name, 0) for name in names)


def status_breakdown(status: Mapping[str, int], rows: int) -> list[int]:
    """Return the numbers of fetched, redirected, gone and pending rows. Every other status counts as pending."""
    fetched, redirected, gone = (
        count_statuses(status, FETCHED_STATUSES),
        count_statuses(status, REDIRECT_STATUSES),
        status.get("status_gone", 0),
    )
    return [fetched, redirected, gone, max(rows - fetched - redirected - gone, 0)]


def draw_pages_over_time(entries: Sequence[JobEntry], now: TableStats | None) -> Chart:
    """Return a line chart of all pages and fetched pages after each job."""
    snapshots = [entry.table_stats for entry in entries if entry.table_stats is not None] + ([now] if now else [])
    points = {each.counted_at: (each.rows, count_statuses(each.status, FETCHED_STATUSES)) for each in snapshots}
    return draw_lines("Pages over time", ("known", "fetched"), [*points.items()], NO_JOB_LOG_MESSAGE)


def draw_round_outcomes(rounds: Sequence[Round]) -> Chart:
    """Return a stacked bar per round: its URLs by fetch outcome."""
    bars = []
    for each in rounds:
        totals = each.totals
        counts = [totals.fetched_count, totals.redirected_count, totals.gone_count, totals.unsuccessful_count]
        bars.append(Bar(str(each.number), counts))
    return draw_stacked_bars("Outcome by round", OUTCOMES, bars, _NO_FETCH_MESSAGE)


def draw_fetch_errors(entries: Sequence[JobEntry]) -> Chart:
    """Return a bar chart of the URLs that were not fetched, by reason."""
    totals = sum_counters(entries)
    reasons = Counter({_STATUS_LABELS[name]: totals.get_fetch_counter(name) for name in _STATUS_LABELS})
    kinds = totals.count_failures_by_kind()
    http_count = kinds.pop("http", 0)
    for kind, count in kinds.items():
        reasons[FAILURE_LABELS.get(kind, kind)] += count
    for label, count in _count_http_errors(http_count, totals.totals.group(HTTP_GROUP)):
        reasons[label] += count
    reasons["internal error"] += totals.get_fetch_counter("FAILED")
    empty = "No fetch has failed." if totals.fetched_count else _NO_FETCH_MESSAGE
    return draw_bars("Fetch failures", ("URLs",), [Bar(*each) for each in _nonzero(reasons)], empty, colours=(4,))


def _count_http_errors(count: int, by_status: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the label and number of failed responses by HTTP status; ``count``: all of them."""
    for status, number in by_status.items():
        label = _HTTP_LABELS.get(status) or ("server error (5xx)" if status.startswith("5") else "other HTTP status")
        yield label, number
        count -= number
    if count > 0:  # of older logs, without status
        yield "HTTP error", count


def _nonzero(counts: Mapping[str, int]) -> Iterator[tuple[str, list[float]]]:
    return ((name, [float(count)]) for name, count in counts.items() if count)


def draw_response_histograms(entries: Sequence[JobEntry]) -> list[Chart]:
    """Return histograms of response times and response sizes, summed over the entries."""
    return [_draw_response_histogram(entries, *each) for each in _RESPONSE_HISTOGRAMS]


def _draw_response_histogram(
    entries: Sequence[JobEntry], group: str, title: str, format_value: Callable[[float], str]
) -> Chart:
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry.counters.get(group, {}))
    empty = "No logged fetch has received a response."
    return draw_histogram(title, from_job_counters(counts), empty, format_value, "responses")


def draw_job_timeline(entries: Sequence[JobEntry]) -> Chart:
    """Return a Gantt chart of jobs with a lane per command."""
    bars = [
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
    return draw_gantt("Jobs over time", bars, NO_JOB_LOG_MESSAGE, legend, _JOB_LANES)


def _job_description(entry: JobEntry) -> str:
    batch = f" {entry.batch_id}" if entry.batch_id else ""
    reason = f": {entry.message}" if entry.message and entry.state in UNSUCCESSFUL_STATES else ""
    return f"{entry.job}{batch}, {entry.state}{reason}, {format_duration(finish_time(entry) - entry.start_time)}"


def draw_top_hosts(overview: Overview | None) -> Chart:
    """Return a bar chart of the hosts with the most pages."""
    rows = (
        [Bar(display_host(each.host), status_breakdown(each.status, each.rows)) for each in overview.hosts]
        if overview
        else []
    )
    names = ("fetched", "redirected", "gone", "not fetched yet")
    return draw_bars("Hosts with the most pages", names, rows, NO_OVERVIEW_MESSAGE, colours=(1, 2, 4, 3))


def draw_host_links(overview: Overview | None) -> Chart:
    """Return a graph of the links between hosts."""
    edges = [
        GraphEdge(display_host(each.source), display_host(each.target), each.links)
        for each in (overview.edges if overview else ())
    ]
    sizes = {display_host(each.host): each.rows for each in overview.hosts} if overview else {}
    counted = any(each.inlinks is not None for each in overview.hosts) if overview else False
    uncounted = "No links between hosts counted yet: run nutch2py updatehostdb -linkDb."
    empty = "No host links to another host." if counted else uncounted
    return draw_graph("Links between hosts", edges, sizes, empty)


def draw_histograms(overview: Overview | None) -> list[Chart]:
    """Return a chart for each histogram of the overview."""
    histograms = dict(overview.histograms) if overview else {}
    names = [*(name for name in _HISTOGRAMS if name in histograms), *sorted(histograms.keys() - _HISTOGRAMS.keys())]
    return [_draw_histogram(name, histograms[name]) for name in names if any(histograms[name].counts)]


def _draw_histogram(name: str, histogram: Histogram) -> Chart:
    style = _HISTOGRAMS.get(name, _HistogramStyle(name.replace("_", " ").capitalize()))
    return draw_histogram(style.title, histogram, "No page has this value.", style.format_value)
