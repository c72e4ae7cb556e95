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
from nutch2py.charts.rate_chart import RateInterval, draw_rates
from nutch2py.charts.stacked_bars import Bar, draw_histogram, draw_stacked_bars
from nutch2py.control_room.round_stats import (
    OTHER_TIME,
    TIMED_JOBS,
    UNSUCCESSFUL_STATES,
    Round,
    finish_time,
    sum_counters,
)
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.fetcher.stats.host_failures import HTTP_GROUP
from nutch2py.fetcher.stats.response_histograms import SIZES_GROUP, TIMES_GROUP, from_job_counters
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import TableStats
from nutch2py.support.formatting import format_compact, format_duration, format_number, format_percent
from nutch2py.support.histogram import Histogram
from nutch2py.url.display_url import display_host

NO_JOB_LOG_MESSAGE = "No job in the log yet: the next job adds data."
_NO_FETCH_MESSAGE = "No round has fetched a page yet."
NO_OVERVIEW_MESSAGE = "No full table scan yet: run nutch2py updatehostdb -linkDb."
_NO_FETCH_IN_RANGE_MESSAGE = "No fetch in this time range: choose a longer one."
OUTCOMES, OUTCOME_COLOURS = ("fetched", "redirected", "gone or forbidden", "failed"), (1, 2, 6, 4)
COVERAGE, COVERAGE_COLOURS = ("fetched", "redirected", "gone", "not fetched yet"), (1, 2, 6, 3)
"""Parts of a crawl, as :func:`status_breakdown` returns them."""
_FRONTIER_TITLE, _COVERAGE_TITLE = "Frontier over time", "Coverage by round"
_ERROR_COLOURS = (4, 6, 5, 1, 3)
_DURATION_PARTS = (*TIMED_JOBS, OTHER_TIME)
_DURATION_COLOURS = (5, 1, 2, 6, 7, 3)
_TIME_UNITS = (("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000))
"""Units of a time axis with their milliseconds, largest first."""
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
STATUS_LABELS = {
    "NOTFOUND": "not found (404)",
    "GONE": "gone (410, 400)",
    "ACCESS_DENIED": "login required (401)",
    "ROBOTS_DENIED": "denied by robots.txt",
    "ROBOTS_DENIED_MAXCRAWLDELAY": "crawl delay too long",
}
"""Labels of protocol statuses of pages that were not fetched."""


_LOGARITHMIC = "logarithmic buckets"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class _HistogramStyle(NamedTuple):
    title: str
    format_value: Callable[[float], str] = format_compact
    x_title: str = ""


def _format_power(number: float) -> str:
    """Return a bound of logarithmic buckets: ``0.03``, ``3·10⁻⁶``."""
    if not 0 < number < 0.001:
        return format_compact(number)
    digits, _, power = f"{number:.0e}".partition("e-")
    return f"{digits}·10⁻{str(int(power)).translate(_SUPERSCRIPTS)}"


def _format_binary_bytes(count: float) -> str:
    """Return a bound in powers of 1024: ``16 KiB``."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.0f} GiB"


def _format_seconds(seconds: float) -> str:
    return format_duration(1000 * seconds)


def _format_offset(seconds: float) -> str:
    return _format_seconds(seconds) if seconds else "now"


_HISTOGRAMS: dict[str, _HistogramStyle] = {
    "depth": _HistogramStyle("Depth", format_number, "links from a seed"),
    "score": _HistogramStyle("Score", _format_power, f"score, {_LOGARITHMIC}"),
    "pagerank": _HistogramStyle("PageRank", _format_power, f"PageRank, {_LOGARITHMIC}"),
    "next_fetch": _HistogramStyle(
        "Freshness", _format_offset, "time until the next fetch of fetched pages; below 0: overdue"
    ),
    "interval": _HistogramStyle("Fetch interval", _format_seconds, f"interval, {_LOGARITHMIC}"),
}


_RESPONSE_HISTOGRAMS = (
    (TIMES_GROUP, "Response time", format_duration, f"time until the last byte, {_LOGARITHMIC}"),
    (SIZES_GROUP, "Response size", _format_binary_bytes, f"size of the content, {_LOGARITHMIC}"),
)
"""Counter groups with a histogram (:mod:`nutch2py.fetcher.stats.response_histograms`): group, title, value format,
title of the axis."""


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
    return draw_lines(
        "Pages over time", ("known", "fetched"), [*points.items()], NO_JOB_LOG_MESSAGE, y_title="pages", colours=(3, 1)
    )


def draw_frontier(entries: Sequence[JobEntry], now: TableStats | None) -> Chart:
    """Return a line chart of the pages that are not fetched yet, and of those that were due, after each job."""
    snapshots = [entry.table_stats for entry in entries if entry.table_stats is not None] + ([now] if now else [])
    points = {each.counted_at: (status_breakdown(each.status, each.rows)[-1], each.due) for each in snapshots}
    names = ("not fetched yet", "due")
    if any(due is None for _, due in points.values()):  # of a store without an index of due pages
        return draw_lines(
            _FRONTIER_TITLE, names[:1], [(at, each[:1]) for at, each in points.items()], NO_JOB_LOG_MESSAGE,
            y_title="pages", colours=(3,),
        )  # fmt: skip
    values = [(at, (pending, due or 0)) for at, (pending, due) in points.items()]
    return draw_lines(_FRONTIER_TITLE, names, values, NO_JOB_LOG_MESSAGE, y_title="pages", colours=(3, 1))


def draw_coverage(rounds: Sequence[Round]) -> Chart:
    """Return a stacked bar per round: all known pages by status at its end."""
    bars, latest = [], None
    for each in rounds:
        for entry in each.entries:
            latest = entry.table_stats or latest
        if latest is not None:
            bars.append(Bar(str(each.number), status_breakdown(latest.status, latest.rows)))
    if not bars:
        return Chart(_COVERAGE_TITLE, "No round has recorded table statistics: this store keeps none.")
    fetched, total = bars[-1].values[0], sum(bars[-1].values)
    description = (
        f"After round {bars[-1].name}: {format_number(total)} pages, {format_percent(fetched, total)} fetched."
    )
    return draw_stacked_bars(
        _COVERAGE_TITLE, COVERAGE, bars, "No page is known.", COVERAGE_COLOURS, "pages", "round", description, False
    )


def draw_round_durations(rounds: Sequence[Round]) -> Chart:
    """Return a stacked bar per round: its time by job, and the time between jobs."""
    durations = [each.durations_by_job() for each in rounds]
    longest = max((sum(each.values()) for each in durations), default=0)
    unit, unit_ms = next(each for each in _TIME_UNITS if longest >= 2 * each[1] or each is _TIME_UNITS[-1])
    bars = [
        Bar(str(each.number), [parts.get(name, 0) / unit_ms for name in _DURATION_PARTS])
        for each, parts in zip(rounds, durations, strict=True)
    ]
    total: Counter[str] = Counter()
    for parts in durations:
        total.update(parts)
    shares = ", ".join(
        f"{name} {format_percent(total[name], total.total())}" for name, _ in total.most_common() if total[name]
    )
    return draw_stacked_bars(
        "Time of each round", _DURATION_PARTS, bars, NO_JOB_LOG_MESSAGE, _DURATION_COLOURS, unit, "round",
        f"{format_duration(total.total())} in all: {shares}.", False,
    )  # fmt: skip


def draw_round_outcomes(rounds: Sequence[Round]) -> Chart:
    """Return a stacked bar per round: its URLs by fetch outcome."""
    bars = []
    for each in rounds:
        totals = each.totals
        counts = [totals.fetched_count, totals.redirected_count, totals.gone_count, totals.unsuccessful_count]
        bars.append(Bar(str(each.number), counts))
    return draw_stacked_bars(
        "Outcome by round", OUTCOMES, bars, _NO_FETCH_MESSAGE, OUTCOME_COLOURS, "URLs", "round", merges=False
    )


def draw_throughput(entries: Sequence[JobEntry], span: tuple[int, int] | None = None) -> Chart:
    """Return the URLs per minute of each fetch by outcome. ``span``: first and last time of the axis."""
    intervals = []
    for entry in entries:
        totals = sum_counters([entry])
        if totals.attempted_count:
            counts = [totals.fetched_count, totals.redirected_count, totals.gone_count, totals.unsuccessful_count]
            intervals.append(RateInterval(entry.start_time, finish_time(entry), counts))
    empty = _NO_FETCH_MESSAGE if span is None else _NO_FETCH_IN_RANGE_MESSAGE
    return draw_rates("Throughput", OUTCOMES, intervals, empty, span, colours=OUTCOME_COLOURS)


def draw_errors_over_time(entries: Sequence[JobEntry], span: tuple[int, int] | None = None) -> Chart:
    """Return the failures per minute of each fetch, by the most frequent reasons. ``span``: as above."""
    fetches = [(entry, count_fetch_failures([entry])) for entry in entries if sum_counters([entry]).attempted_count]
    empty = _NO_FETCH_MESSAGE if span is None else _NO_FETCH_IN_RANGE_MESSAGE
    if not fetches:
        return Chart("Errors over time", empty)
    total: Counter[str] = Counter()
    for _, reasons in fetches:
        total.update(reasons)
    common = [name for name, _ in total.most_common(len(_ERROR_COLOURS))]
    names = [*common[:-1], "other reasons"] if len(total) > len(_ERROR_COLOURS) else common
    intervals = []
    for entry, reasons in fetches:
        values = [float(reasons[name]) for name in names]
        if len(total) > len(_ERROR_COLOURS):
            values[-1] = float(reasons.total()) - sum(values)
        intervals.append(RateInterval(entry.start_time, finish_time(entry), values))
    no_failure = "No fetch has failed."
    return draw_rates("Errors over time", names, intervals, no_failure, span, colours=_ERROR_COLOURS)


def count_fetch_failures(entries: Sequence[JobEntry]) -> Counter[str]:
    """Return the URLs that were not fetched, by label of the reason."""
    totals = sum_counters(entries)
    reasons = Counter({STATUS_LABELS[name]: totals.get_fetch_counter(name) for name in STATUS_LABELS})
    kinds = totals.count_failures_by_kind()
    http_count = kinds.pop("http", 0)
    for kind, count in kinds.items():
        reasons[FAILURE_LABELS.get(kind, kind)] += count
    for label, count in _count_http_errors(http_count, totals.totals.group(HTTP_GROUP)):
        reasons[label] += count
    reasons["internal error"] += totals.get_fetch_counter("FAILED")
    return +reasons


def draw_fetch_errors(entries: Sequence[JobEntry]) -> Chart:
    """Return a bar chart of the URLs that were not fetched, by reason."""
    totals, reasons = sum_counters(entries), count_fetch_failures(entries)
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
    entries: Sequence[JobEntry], group: str, title: str, format_value: Callable[[float], str], x_title: str
) -> Chart:
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry.counters.get(group, {}))
    empty = "No logged fetch has received a response."
    return draw_histogram(title, from_job_counters(counts), empty, format_value, "responses", x_title)


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
    return draw_bars("Hosts with the most pages", COVERAGE, rows, NO_OVERVIEW_MESSAGE, colours=COVERAGE_COLOURS)


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


def draw_page_kinds(overview: Overview | None) -> list[Chart]:
    """Return a bar chart of the fetched pages by content type, and one by language."""
    kinds = overview.page_kinds if overview else {}
    return [
        draw_bars(title, ("pages",), [Bar(*each) for each in _nonzero(kinds.get(name, {}))], NO_OVERVIEW_MESSAGE)
        for name, title in (("content_type", "Content type"), ("language", "Language"))
    ]


def draw_histograms(overview: Overview | None) -> list[Chart]:
    """Return a chart for each histogram of the overview."""
    histograms = dict(overview.histograms) if overview else {}
    names = [*(name for name in _HISTOGRAMS if name in histograms), *sorted(histograms.keys() - _HISTOGRAMS.keys())]
    return [_draw_histogram(name, histograms[name]) for name in names if any(histograms[name].counts)]


def _draw_histogram(name: str, histogram: Histogram) -> Chart:
    style = _HISTOGRAMS.get(name, _HistogramStyle(name.replace("_", " ").capitalize()))
    return draw_histogram(style.title, histogram, "No page has this value.", style.format_value, x_title=style.x_title)
