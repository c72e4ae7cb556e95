"""Prometheus metrics of a crawl in the text exposition format (version 0.0.4), computed from the job log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from nutch2py.fetcher.stats.fetch_histogram import SIZES_GROUP, SUM_KEY, TIMES_GROUP, list_buckets
from nutch2py.fetcher.stats.host_failures import HOSTS_GROUP
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import TableStats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MAX_ENTRIES = 1000  # newest entries of the job log
_LABEL_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_MS_PER_SECOND = 1000.0
_SCORE_LABELS = ("least", "mean", "greatest")  # dashboards query these: minimum, mean, maximum of ScoreSummary


class MetricsSource(Protocol):
    """Source of the metrics, as :class:`nutch2py.crawl_reader.CrawlReader`."""

    def jobs(self, limit: int = 100) -> list[JobEntry]:
        """Return up to ``limit`` entries of the job log, newest first."""

    def table_stats(self) -> TableStats | None:
        """Return the table statistics, or None if unknown."""


class JobMetric(NamedTuple):
    """A metric of a job; ``get_value`` returns None for an entry without a value."""

    name: str
    help_text: str
    get_value: Callable[[JobEntry], float | None]


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / _MS_PER_SECOND


def _exit_code(entry: JobEntry) -> float | None:
    return -1 if entry.state == JobState.KILLED else entry.exit_code


LAST_JOB_METRICS = (
    JobMetric(
        "job_last_begin_timestamp_seconds", "Start time of the newest job.", lambda e: e.start_time / _MS_PER_SECOND
    ),
    JobMetric(
        "job_last_end_timestamp_seconds", "End time of the newest finished job.", lambda e: _seconds(e.finish_time)
    ),
    JobMetric(
        "job_last_duration_seconds",
        "Duration of the newest finished job.",
        lambda e: _seconds(e.finish_time and max(0, e.finish_time - e.start_time)),
    ),
    JobMetric("job_last_exit_code", "Exit code of the newest finished job; -1: it was killed.", _exit_code),
    JobMetric("job_last_cpu_seconds", "CPU time of the newest finished job.", lambda e: e.cpu_ms / _MS_PER_SECOND),
    JobMetric(
        "job_last_peak_memory_bytes",
        "Peak memory of the largest process of the newest finished job.",
        lambda e: e.peak_bytes,
    ),
    JobMetric("job_last_rows", "Rows processed by the newest finished job.", lambda e: e.rows),
)
"""Metrics of the newest job of each name: the first in any state, the others of finished jobs."""
RUNNING_JOB_METRICS = (
    JobMetric(
        "job_running_begin_timestamp_seconds", "Start time of a running job.", lambda e: e.start_time / _MS_PER_SECOND
    ),
    JobMetric("job_running_rows", "Rows processed by a running job.", lambda e: e.rows),
    JobMetric("job_running_rows_expected", "Estimated number of rows of a running job.", lambda e: e.expected),
)
FETCH_HISTOGRAMS = {
    "fetch_answer_seconds": (TIMES_GROUP, 1 / _MS_PER_SECOND, "Response time of the newest fetch, in seconds."),
    "fetch_answer_bytes": (SIZES_GROUP, 1.0, "Response size of the newest fetch, in bytes."),
}
"""Histogram name -> (counter group, factor to the unit, help text)."""


class _ExpositionWriter:
    """Collects lines; the samples of a metric follow its header."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add_header(self, name: str, help_text: str, kind: str = "gauge") -> None:
        self.lines += [f"# HELP nutch2py_{name} {help_text}", f"# TYPE nutch2py_{name} {kind}"]

    def add_sample(self, name: str, labels: Mapping[str, str], value: float) -> None:
        label_text = ",".join(f'{label}="{text.translate(_LABEL_ESCAPES)}"' for label, text in labels.items())
        self.lines.append(f"nutch2py_{name}{{{label_text}}} {value:.15g}")

    def add_gauge(self, name: str, help_text: str, samples: Iterable[tuple[Mapping[str, str], float | None]]) -> None:
        found = [(labels, value) for labels, value in samples if value is not None]
        if found:
            self.add_header(name, help_text)
            for labels, value in found:
                self.add_sample(name, labels, value)


def render_exposition(reader: MetricsSource, crawl_id: str = "") -> str:
    """Return the metrics of a crawl, each with the label ``crawl``; ``crawl_id``: label of a crawl without jobs.

    Takes no lock and scans no rows. Propagates errors of the job log.
    """
    entries = reader.jobs(limit=_MAX_ENTRIES)
    crawl = {"crawl": entries[0].crawl_id if entries else crawl_id}
    text = _ExpositionWriter()
    _write_job_metrics(text, crawl, entries)
    _write_table_metrics(text, crawl, reader.table_stats())
    return "\n".join([*text.lines, ""])


def _write_job_metrics(text: _ExpositionWriter, crawl: Mapping[str, str], entries: Sequence[JobEntry]) -> None:
    finished = [entry for entry in entries if entry.state != JobState.RUNNING]
    newest, newest_over = _first_by_job(entries), _first_by_job(finished)
    succeeded = _first_by_job([entry for entry in finished if entry.state == JobState.FINISHED])
    for number, metric in enumerate(LAST_JOB_METRICS):
        of = newest_over if number else newest
        text.add_gauge(
            metric.name, metric.help_text, (({**crawl, "job": job}, metric.get_value(e)) for job, e in of.items())
        )
    help_text = "End time of the newest successful job."
    ends = (({**crawl, "job": job}, _seconds(entry.finish_time)) for job, entry in succeeded.items())
    text.add_gauge("job_last_success_timestamp_seconds", help_text, ends)
    running = [entry for entry in entries if entry.state == JobState.RUNNING]
    for metric in RUNNING_JOB_METRICS:
        labels = ({**crawl, "job": entry.job, "batch": entry.batch_id, "id": entry.id} for entry in running)
        text.add_gauge(metric.name, metric.help_text, zip(labels, map(metric.get_value, running), strict=True))
    numbers = Counter((entry.job, str(entry.state)) for entry in entries)
    states = (({**crawl, "job": job, "state": state}, count) for (job, state), count in sorted(numbers.items()))
    text.add_gauge("jobs_logged", f"Jobs by state, of the newest {_MAX_ENTRIES} log entries.", states)
    groups = {group for group, _, _ in FETCH_HISTOGRAMS.values()} | {HOSTS_GROUP}  # hosts would make unbounded labels
    counters = (
        ({**crawl, "job": job, "group": group, "name": name}, float(amount))
        for job, entry in newest_over.items()
        for group, names in sorted(entry.counters.items())
        if group not in groups
        for name, amount in sorted(names.items())
    )
    text.add_gauge("job_last_counter", "Counters of the newest finished job.", counters)
    for name, (group, factor, help_text) in FETCH_HISTOGRAMS.items():
        fetch = next((entry for entry in finished if group in entry.counters), None)
        if fetch is not None:
            _write_histogram(text, name, help_text, crawl, fetch.counters[group], factor)


def _write_histogram(
    text: _ExpositionWriter,
    name: str,
    help_text: str,
    crawl: Mapping[str, str],
    counts: Mapping[str, int],
    factor: float,
) -> None:
    """Write a histogram; ``counts``: by upper bound of the bucket, with the overflow bucket and the sum."""
    text.add_header(name, help_text, "histogram")
    total = 0
    for bound, number in list_buckets(counts):
        total += number
        upper = "+Inf" if math.isinf(bound) else f"{bound * factor:.15g}"
        text.add_sample(f"{name}_bucket", {**crawl, "le": upper}, total)
    text.add_sample(f"{name}_sum", crawl, counts.get(SUM_KEY, 0) * factor)
    text.add_sample(f"{name}_count", crawl, total)


def _write_table_metrics(text: _ExpositionWriter, crawl: Mapping[str, str], stats: TableStats | None) -> None:
    if stats is None:
        return
    text.add_gauge("table_figures_timestamp_seconds", "Time of the row count.", [(crawl, _seconds(stats.counted_at))])
    text.add_gauge("table_rows", "Rows of the table.", [(crawl, stats.rows)])
    by_status = (({**crawl, "status": name}, count) for name, count in stats.status.items())
    text.add_gauge("table_rows_by_status", "Rows by status.", by_status)
    text.add_gauge("table_rows_due", "Rows due for fetching, up to 100000.", [(crawl, stats.due)])
    if stats.score is not None:
        scores = zip(_SCORE_LABELS, stats.score, strict=True)
        text.add_gauge(
            "table_score",
            "Minimum, mean and maximum of the score.",
            (({**crawl, "of": of}, score) for of, score in scores),
        )


def _first_by_job(entries: Sequence[JobEntry]) -> dict[str, JobEntry]:
    """Return the first entry of each job name."""
    found: dict[str, JobEntry] = {}
    for entry in entries:
        found.setdefault(entry.job, entry)
    return found
