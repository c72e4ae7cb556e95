"""The metrics of a crawl for Prometheus, as text in its exposition format (version 0.0.4), from the job log alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from nutch2py.fetcher.distribution import SIZES_GROUP, SUM, TIMES_GROUP, buckets
from nutch2py.fetcher.troubles import HOSTS_GROUP
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.figures import Figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOKED_AT = 1000  # entries
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_SECOND = 1000.0


class Watched(Protocol):
    """What is asked of a crawl: :class:`nutch2py.crawl_reader.CrawlReader` answers it."""

    def jobs(self, limit: int = 100) -> list[JobEntry]:
        """Return the newest entries of the job log, the newest first."""

    def figures(self) -> Figures | None:
        """Return the figures of the table, None when not known."""


class Metric(NamedTuple):
    """A metric: what it is, for people, and its value in an entry, None for none."""

    name: str
    told: str
    value: Callable[[JobEntry], float | None]


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / _SECOND


def _code(entry: JobEntry) -> float | None:
    return -1 if entry.state == JobState.KILLED else entry.exit_code


LAST = (
    Metric("job_last_begin_timestamp_seconds", "When the newest job began.", lambda e: e.begun / _SECOND),
    Metric("job_last_end_timestamp_seconds", "When the newest job that ended did.", lambda e: _seconds(e.ended)),
    Metric("job_last_duration_seconds", "How long it took.", lambda e: _seconds(e.ended and max(0, e.ended - e.begun))),
    Metric("job_last_exit_code", "Its exit code; -1: it was killed.", _code),
    Metric("job_last_cpu_seconds", "Its CPU time.", lambda e: e.cpu_ms / _SECOND),
    Metric("job_last_peak_memory_bytes", "The most memory that one process of it had.", lambda e: e.peak_bytes),
    Metric("job_last_rows", "The rows that it has done.", lambda e: e.done),
)
"""Of the newest job of each name: the first of any state, the others of those that are over."""
RUNNING = (
    Metric("job_running_begin_timestamp_seconds", "When a running job began.", lambda e: e.begun / _SECOND),
    Metric("job_running_rows", "Rows that it has done.", lambda e: e.done),
    Metric("job_running_rows_expected", "About how many it will do.", lambda e: e.expected),
)
DISTRIBUTIONS = {
    "fetch_answer_seconds": (TIMES_GROUP, 1 / _SECOND, "Seconds to an answer, of the newest fetch."),
    "fetch_answer_bytes": (SIZES_GROUP, 1.0, "Bytes of an answer, of the newest fetch."),
}
"""Name -> (group of the counters, factor to the unit, what it is): a histogram."""


class _Text:
    """Collects lines; the samples of a metric stand together, below its head."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def head(self, name: str, told: str, kind: str = "gauge") -> None:
        self.lines += [f"# HELP nutch2py_{name} {told}", f"# TYPE nutch2py_{name} {kind}"]

    def sample(self, name: str, labels: Mapping[str, str], value: float) -> None:
        shown = ",".join(f'{label}="{text.translate(_ESCAPED)}"' for label, text in labels.items())
        self.lines.append(f"nutch2py_{name}{{{shown}}} {value:.15g}")

    def gauge(self, name: str, told: str, samples: Iterable[tuple[Mapping[str, str], float | None]]) -> None:
        found = [(labels, value) for labels, value in samples if value is not None]
        if found:
            self.head(name, told)
            for labels, value in found:
                self.sample(name, labels, value)


def exposition(reader: Watched, crawl_id: str = "") -> str:
    """Return the metrics of a crawl, each with the label ``crawl``. ``crawl_id``: of one that has no job yet.

    Raises what reading the job log does. Nothing is scanned, and no lock is taken.
    """
    entries = reader.jobs(limit=_LOOKED_AT)
    crawl = {"crawl": entries[0].crawl_id if entries else crawl_id}
    text = _Text()
    _jobs(text, crawl, entries)
    _table(text, crawl, reader.figures())
    return "\n".join([*text.lines, ""])


def _jobs(text: _Text, crawl: Mapping[str, str], entries: Sequence[JobEntry]) -> None:
    over = [entry for entry in entries if entry.state != JobState.RUNNING]
    newest, newest_over = _first(entries), _first(over)
    succeeded = _first([entry for entry in over if entry.state == JobState.FINISHED])
    for number, metric in enumerate(LAST):
        of = newest_over if number else newest
        text.gauge(metric.name, metric.told, (({**crawl, "job": job}, metric.value(e)) for job, e in of.items()))
    told = "When the newest job that was finished ended."
    ends = (({**crawl, "job": job}, _seconds(entry.ended)) for job, entry in succeeded.items())
    text.gauge("job_last_success_timestamp_seconds", told, ends)
    running = [entry for entry in entries if entry.state == JobState.RUNNING]
    for metric in RUNNING:
        labels = ({**crawl, "job": entry.job, "batch": entry.batch_id, "id": entry.id} for entry in running)
        text.gauge(metric.name, metric.told, zip(labels, map(metric.value, running), strict=True))
    numbers = Counter((entry.job, str(entry.state)) for entry in entries)
    states = (({**crawl, "job": job, "state": state}, count) for (job, state), count in sorted(numbers.items()))
    text.gauge("jobs_logged", f"Jobs by state, of the newest {_LOOKED_AT} in the log.", states)
    groups = {group for group, _, _ in DISTRIBUTIONS.values()} | {HOSTS_GROUP}  # hosts would be labels without end
    counters = (
        ({**crawl, "job": job, "group": group, "name": name}, float(amount))
        for job, entry in newest_over.items()
        for group, names in sorted(entry.counters.items())
        if group not in groups
        for name, amount in sorted(names.items())
    )
    text.gauge("job_last_counter", "What the newest job that is over has counted.", counters)
    for name, (group, factor, told) in DISTRIBUTIONS.items():
        fetch = next((entry for entry in over if group in entry.counters), None)
        if fetch is not None:
            _distribution(text, name, told, crawl, fetch.counters[group], factor)


def _distribution(
    text: _Text, name: str, told: str, crawl: Mapping[str, str], counts: Mapping[str, int], factor: float
) -> None:
    """Write a histogram. ``counts``: by the upper bound of the bucket, ``more`` above the last, and the ``sum``."""
    text.head(name, told, "histogram")
    total = 0
    for bound, number in buckets(counts):
        total += number
        most = "+Inf" if math.isinf(bound) else f"{bound * factor:.15g}"
        text.sample(f"{name}_bucket", {**crawl, "le": most}, total)
    text.sample(f"{name}_sum", crawl, counts.get(SUM, 0) * factor)
    text.sample(f"{name}_count", crawl, total)


def _table(text: _Text, crawl: Mapping[str, str], figures: Figures | None) -> None:
    if figures is None:
        return
    text.gauge("table_figures_timestamp_seconds", "When the rows were counted.", [(crawl, _seconds(figures.made))])
    text.gauge("table_rows", "Rows of the table.", [(crawl, figures.rows)])
    by_status = (({**crawl, "status": name}, count) for name, count in figures.status.items())
    text.gauge("table_rows_by_status", "Rows by status.", by_status)
    text.gauge("table_rows_due", "Rows that are due, up to 100000.", [(crawl, figures.due)])
    if figures.score is not None:
        bounds = figures.score._asdict().items()
        text.gauge(
            "table_score", "Bounds and mean of the score.", (({**crawl, "of": of}, score) for of, score in bounds)
        )


def _first(entries: Sequence[JobEntry]) -> dict[str, JobEntry]:
    """Return the first entry of each name."""
    found: dict[str, JobEntry] = {}
    for entry in entries:
        found.setdefault(entry.job, entry)
    return found
