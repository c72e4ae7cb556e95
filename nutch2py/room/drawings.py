"""The pictures of a crawl, of its job log, its figures and its overview."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nutch2py.fetcher.answer import FailureKind
from nutch2py.fetcher.distribution import SIZES_GROUP, TIMES_GROUP, buckets
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.overview import Histogram, Overview
from nutch2py.pictures.bars import bars
from nutch2py.pictures.gantt import Work, gantt
from nutch2py.pictures.graph import Edge, graph
from nutch2py.pictures.lines import lines
from nutch2py.pictures.picture import Picture
from nutch2py.pictures.stacks import Bar, Bucket, histogram, stacks
from nutch2py.pictures.words import full, short, size, span
from nutch2py.room.rounds import BAD, Round, end_of, tally_of

NO_LOG = "No job has been logged yet: this picture begins with the next one."
NO_OVERVIEW = "No job has looked at every row yet: nutch2py updatehostdb -linkDb does."
OUTCOMES = ("fetched", "redirected", "gone or forbidden", "failed")
STATES = {JobState.RUNNING: 2, JobState.FINISHED: 1, JobState.STOPPED: 3, JobState.FAILED: 4, JobState.KILLED: 4}
"""Colours of jobs."""
FETCHED = ("status_fetched", "status_notmodified")
MOVED = ("status_redir_temp", "status_redir_perm")
WAITING = ("status_unfetched", "null", "status_retry")
_ERRORS: dict[str, str] = {
    FailureKind.DNS: "host name unknown",
    FailureKind.REFUSED: "connection refused",
    FailureKind.CONNECT: "no connection",
    FailureKind.SOCKET: "no socket to ask by",
    FailureKind.TIMEOUT: "no answer in time",
    FailureKind.CLOSED: "connection closed",
    FailureKind.PROTOCOL: "answer is no HTTP",
    FailureKind.TLS: "certificate or TLS",
    FailureKind.GATE: "address is excluded",
    FailureKind.LIMIT: "beyond a limit",
    FailureKind.URL: "malformed URL",
    FailureKind.SCHEME: "unknown protocol",
    FailureKind.ROBOTS: "robots.txt unreadable",
    FailureKind.BROWSER: "not rendered",
    FailureKind.OTHER: "other failures",
    "http": "error of the server (5xx)",
}
_LANES = ("inject", "generate", "fetch", "parse", "updatedb", "index")
_REFUSALS = {
    "NOTFOUND": "not found (404)",
    "GONE": "gone (410, 400)",
    "ACCESS_DENIED": "needs a login (401)",
    "ROBOTS_DENIED": "denied by robots.txt",
}


class _Kind(NamedTuple):
    title: str
    shown: Callable[[float], str] = short


def _days(seconds: float) -> str:
    return span(1000 * seconds)


_HISTOGRAMS: dict[str, _Kind] = {
    "depth": _Kind("Links from a seed", full),
    "score": _Kind("Score"),
    "pagerank": _Kind("PageRank"),
    "interval": _Kind("Time between two fetches", _days),
}


_ANSWERS = (
    (TIMES_GROUP, "Time to an answer", span),
    (SIZES_GROUP, "Size of an answer", size),
)
"""Groups of counters with a distribution (:mod:`nutch2py.fetcher.distribution`), and how they are drawn."""


def part(status: Mapping[str, int], names: Sequence[str]) -> int:
    """Return how many rows have one of some statuses."""
    return sum(status.get(name, 0) for name in names)


def parts_of(status: Mapping[str, int], rows: int) -> list[int]:
    """Return how many rows are fetched, redirected, gone and waiting; of what other statuses there are: waiting."""
    good, moved, gone = part(status, FETCHED), part(status, MOVED), status.get("status_gone", 0)
    return [good, moved, gone, max(rows - good - moved - gone, 0)]


def pages_over_time(entries: Sequence[JobEntry], now: Figures | None) -> Picture:
    """Return how many pages the table had, and how many of them were fetched, after each job."""
    known = [entry.figures for entry in entries if entry.figures is not None] + ([now] if now else [])
    points = {figures.made: (figures.rows, part(figures.status, FETCHED)) for figures in known}
    return lines("Pages over time", ("known", "fetched"), [*points.items()], NO_LOG)


def outcomes(rounds: Sequence[Round]) -> Picture:
    """Return what came of the URLs of each round."""
    found = []
    for each in rounds:
        tally = each.tally
        found.append(Bar(str(each.number), [tally.good, tally.moved, tally.gone, tally.failed]))
    return stacks("What came of each round", OUTCOMES, found, "No round has fetched anything yet.")


def errors(entries: Sequence[JobEntry]) -> Picture:
    """Return why URLs were not fetched, by kind."""
    tally = tally_of(entries)
    kinds = Counter({_REFUSALS[name]: tally.fetched(name) for name in _REFUSALS})
    for kind, count in tally.failures().items():
        kinds[_ERRORS.get(kind, kind)] += count
    none = "No fetch has failed." if tally.good else "No round has fetched anything yet."
    return bars("Why URLs were not fetched", ("URLs",), [Bar(*each) for each in _listed(kinds)], none, colours=(4,))


def _listed(counts: Mapping[str, int]) -> Iterator[tuple[str, list[float]]]:
    return ((name, [float(count)]) for name, count in counts.items() if count)


def answers(entries: Sequence[JobEntry]) -> list[Picture]:
    """Return how long the answers of fetches took, and how many bytes they had, of all that the entries tell of."""
    return [_answers(entries, *each) for each in _ANSWERS]


def _answers(entries: Sequence[JobEntry], group: str, title: str, shown: Callable[[float], str]) -> Picture:
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry.counters.get(group, {}))
    found = buckets(counts)
    lows = [0.0, *(bound for bound, _ in found[:-1])]
    spans = [Bucket(low, high, number) for low, (high, number) in zip(lows, found, strict=True)]
    return histogram(title, spans, "No fetch that was logged has had an answer.", shown, "answers")


def work(entries: Sequence[JobEntry]) -> Picture:
    """Return the jobs over time, a lane for each command."""
    works = [
        Work(entry.job, entry.begun, end_of(entry), STATES[entry.state], _told(entry))
        for entry in sorted(entries, key=lambda entry: entry.id)
    ]
    used = {entry.state for entry in entries}
    legend = [(1, "finished")] if JobState.FINISHED in used else []
    legend += [(2, "running")] if JobState.RUNNING in used else []
    legend += [(3, "stopped")] if JobState.STOPPED in used else []
    legend += [(4, "failed or killed")] if used & {JobState.FAILED, JobState.KILLED} else []
    return gantt("Jobs over time", works, NO_LOG, legend, _LANES)


def _told(entry: JobEntry) -> str:
    of = f" {entry.batch_id}" if entry.batch_id else ""
    why = f": {entry.message}" if entry.message and entry.state in BAD else ""
    return f"{entry.job}{of}, {entry.state}{why}, {span(end_of(entry) - entry.begun)}"


def hosts(overview: Overview | None) -> Picture:
    """Return the hosts with the most pages."""
    rows = [Bar(each.host, parts_of(each.status, each.rows)) for each in overview.hosts] if overview else []
    names = ("fetched", "redirected", "gone", "not fetched yet")
    return bars("Hosts with the most pages", names, rows, NO_OVERVIEW, colours=(1, 2, 4, 3))


def links(overview: Overview | None) -> Picture:
    """Return which hosts link to which."""
    edges = [Edge(each.source, each.target, each.links) for each in overview.edges] if overview else []
    sizes = {each.host: each.rows for each in overview.hosts} if overview else {}
    counted = any(each.inlinks is not None for each in overview.hosts) if overview else False
    yet = "No links between hosts have been counted yet: nutch2py updatehostdb -linkDb does."
    none = "No host links to another." if counted else yet
    return graph("Links between hosts", edges, sizes, none)


def spreads(overview: Overview | None) -> list[Picture]:
    """Return a histogram of each number that the overview has."""
    found = dict(overview.histograms) if overview else {}
    order = [*(name for name in _HISTOGRAMS if name in found), *sorted(found.keys() - _HISTOGRAMS.keys())]
    return [_spread(name, found[name]) for name in order if any(found[name].counts)]


def _spread(name: str, spread: Histogram) -> Picture:
    kind = _HISTOGRAMS.get(name, _Kind(name.replace("_", " ").capitalize()))
    highs = [*spread.bounds[1:], math.inf]
    buckets = [Bucket(*each) for each in zip(spread.bounds, highs, spread.counts, strict=True)]
    return histogram(kind.title, buckets, "No page has this number.", kind.shown)
