"""Activity of a crawl in a range of time, and the hosts that failed in it, from the job log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nutch2py.control_room.crawl_charts import FAILURE_LABELS, STATUS_LABELS
from nutch2py.control_room.round_stats import finish_time, sum_counters
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.fetcher.queues.queue_state import QueueState
from nutch2py.fetcher.stats.host_failures import HOSTS_GROUP, HTTP_REASON_PREFIX
from nutch2py.fetcher.stats.host_times import HOST_TIMES_GROUP, RESPONSES_COUNTER, TIME_COUNTER
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.jobs.monitoring.skip_reasons import FAILURE_REASONS, FETCH_REASONS, HTTP_REMEDIES

_HOUR_MS = 3_600_000
DEFERRED = "deferred"
_OTHER_LABEL = "other"
_MAX_HOSTS, _MAX_LABELS = 20, 7
_DEFAULT_REMEDY = "failure of the server; retried later"
_DEFAULT_REMEDIES = {
    "NOTFOUND": "nothing: the pages do not exist",
    "GONE": "nothing: the server removed the pages",
}


class TimeRange(NamedTuple):
    """A range of time that ends now. ``milliseconds``: its length, None for all jobs of the log."""

    name: str
    label: str
    milliseconds: int | None


TIME_RANGES = (
    TimeRange("1h", "Last hour", _HOUR_MS),
    TimeRange("24h", "Last 24 hours", 24 * _HOUR_MS),
    TimeRange("7d", "Last 7 days", 7 * 24 * _HOUR_MS),
    TimeRange("30d", "Last 30 days", 30 * 24 * _HOUR_MS),
    TimeRange("all", "All", None),
)
DEFAULT_RANGE = TIME_RANGES[1]


def find_range(name: str) -> TimeRange:
    """Return the range of a name, the default for an unknown one."""
    return next((each for each in TIME_RANGES if each.name == name), DEFAULT_RANGE)


class Activity(NamedTuple):
    """Jobs that ran in a range of time.

    Attributes:
        entries: The jobs, newest first.
        span: First and last time of the jobs, None without one.
        fetch_span: First and last time of those that fetched, ``span`` without one.
    """

    entries: list[JobEntry]
    span: tuple[int, int] | None
    fetch_span: tuple[int, int] | None

    @classmethod
    def from_entries(cls, entries: Sequence[JobEntry], length: TimeRange, now: int) -> Activity:
        """Select the jobs that ran in a range."""
        since = 0 if length.milliseconds is None else now - length.milliseconds
        chosen = [entry for entry in entries if finish_time(entry) >= since]
        if not chosen:
            return cls([], None, None)
        fetches = [entry for entry in chosen if sum_counters([entry]).attempted_count]
        span, fetch_span = (
            (max(min(entry.start_time for entry in each), since), max(map(finish_time, each)))
            for each in (chosen, fetches or chosen)
        )
        return cls(chosen, span, fetch_span)


class FailingHost(NamedTuple):
    """A host: its URLs that were not fetched by label of the reason, and the remedy of the most frequent one."""

    host: str
    counts: Counter[str]
    remedy: str

    @property
    def total(self) -> int:
        """Number of URLs."""
        return self.counts.total()

    @property
    def missing_count(self) -> int:
        """Number of URLs that do not exist: no failure of the host."""
        return sum(self.counts[STATUS_LABELS[name]] for name in _DEFAULT_REMEDIES)


class FailureMatrix(NamedTuple):
    """Failures by host and reason.

    Attributes:
        labels: Labels of the columns, most URLs first.
        hosts: Hosts, first those with most URLs that are not just missing (404, 410).
        host_count: Number of all counted hosts.
    """

    labels: list[str]
    hosts: list[FailingHost]
    host_count: int

    def cells(self, host: FailingHost) -> Iterator[tuple[int, int]]:
        """Yield the number and the shade (0 to 4) of each column of a host."""
        most = max((each.total for each in self.hosts), default=1) or 1
        for label in self.labels:
            count = host.counts[label]
            yield count, 0 if not count else 1 + min(3, 4 * count // (most + 1))


def count_failing_hosts(entries: Sequence[JobEntry]) -> FailureMatrix:
    """Return the failures by host and reason; a job logs the five hosts with most failures of each reason."""
    failing = []
    for host, reasons in _count_reasons(entries).items():
        counts: Counter[str] = Counter()
        for reason, count in reasons.items():
            counts[reason_label(reason)] += count
        failing.append(FailingHost(host, counts, _find_remedy(reasons.most_common(1)[0][0])))
    failing.sort(key=lambda each: (each.missing_count - each.total, -each.total, each.host))
    shown = failing[:_MAX_HOSTS]
    totals: Counter[str] = Counter()
    for each in shown:
        totals.update(each.counts)
    labels = [label for label, _ in totals.most_common()]
    if len(labels) > _MAX_LABELS:
        rest = labels[_MAX_LABELS - 1 :]
        labels = [*labels[: _MAX_LABELS - 1], _OTHER_LABEL]
        for each in shown:
            each.counts[_OTHER_LABEL] = sum(each.counts.pop(label, 0) for label in rest)
    return FailureMatrix(labels, shown, len(failing))


def _count_reasons(entries: Sequence[JobEntry]) -> Mapping[str, Counter[str]]:
    """Return the numbers of URLs by host and reason."""
    hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, count in sum_counters(entries).totals.group(HOSTS_GROUP).items():
        reason, _, host = name.partition(" ")
        hosts[host][reason] += count
    return hosts


class HostFailure(NamedTuple):
    """URLs of a host that were not fetched for a reason, with its label and remedy."""

    label: str
    url_count: int
    remedy: str


def find_host_failures(entries: Sequence[JobEntry], host: str) -> list[HostFailure]:
    """Return the failures of a host that the jobs logged, most URLs first."""
    reasons = _count_reasons(entries).get(host, Counter())
    return [HostFailure(reason_label(reason), count, _find_remedy(reason)) for reason, count in reasons.most_common()]


def find_queue(entries: Sequence[JobEntry], host: str) -> tuple[JobEntry, QueueState] | None:
    """Return the running fetch with a queue of a host, and the queue; None without one."""
    for entry in entries:
        for queue in entry.queues:
            if queue.queue == host and entry.state == JobState.RUNNING:
                return entry, queue
    return None


class SlowHost(NamedTuple):
    """A host with slow responses: number of responses, their mean time, and the total time of them, in milliseconds."""

    host: str
    responses: int
    mean_ms: float
    total_ms: int


def find_slow_hosts(entries: Sequence[JobEntry], limit: int = 10) -> list[SlowHost]:
    """Return the hosts with the slowest responses; a job logs those of its ten slowest hosts."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, count in sum_counters(entries).totals.group(HOST_TIMES_GROUP).items():
        quantity, _, host = name.partition(" ")
        counts[host][quantity] += count
    found = [
        SlowHost(host, each[RESPONSES_COUNTER], each[TIME_COUNTER] / each[RESPONSES_COUNTER], each[TIME_COUNTER])
        for host, each in counts.items()
        if each[RESPONSES_COUNTER] > 0
    ]
    return sorted(found, key=lambda each: (-each.mean_ms, each.host))[:limit]


def reason_label(reason: str) -> str:
    """Return the label of a reason of :mod:`nutch2py.fetcher.stats.host_failures`."""
    if reason.startswith(HTTP_REASON_PREFIX):
        return f"HTTP {reason.removeprefix(HTTP_REASON_PREFIX)}"
    if reason in STATUS_LABELS:
        return STATUS_LABELS[reason]
    if reason in FETCH_REASONS:
        return "internal error" if reason == "FAILED" else DEFERRED
    return FAILURE_LABELS.get(reason, reason)


def _find_remedy(reason: str) -> str:
    if reason.startswith(HTTP_REASON_PREFIX):
        remedy = HTTP_REMEDIES.get(reason.removeprefix(HTTP_REASON_PREFIX), "")
    elif reason in FETCH_REASONS:
        remedy = FETCH_REASONS[reason].remedy
        if remedy and reason_label(reason) == DEFERRED:
            remedy = f"nothing: a later round fetches them ({remedy})"
    else:
        kind = next((kind for kind in FailureKind if kind.value == reason), None)
        remedy = FAILURE_REASONS[kind].remedy if kind is not None else ""
    return remedy or _DEFAULT_REMEDIES.get(reason, _DEFAULT_REMEDY)
