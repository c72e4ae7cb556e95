"""Prometheus metrics of a crawl in the text exposition format (version 0.0.4), computed from the job log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from prometheus_client import Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

from nutch2py.fetcher.stats.host_failures import HOSTS_GROUP
from nutch2py.fetcher.stats.host_times import HOST_TIMES_GROUP
from nutch2py.fetcher.stats.response_histograms import SIZES_GROUP, SUM_KEY, TIMES_GROUP, from_job_counters
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import TableStats

_MAX_ENTRIES = 1000  # newest entries of the job log
_MS_PER_SECOND = 1000.0
JOB_LABEL = "job_name"  # not "job", which a scrape and the grouping key of a Pushgateway overwrite
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


def render_exposition(reader: MetricsSource, crawl_id: str = "") -> str:
    """Return the metrics of a crawl, each with the label ``crawl``; ``crawl_id``: label of a crawl without jobs.

    Takes no lock and scans no rows. Propagates errors of the job log.
    """
    entries = reader.jobs(limit=_MAX_ENTRIES)
    crawl = entries[0].crawl_id if entries else crawl_id
    return render_families([*_job_metrics(crawl, entries), *_table_metrics(crawl, reader.table_stats())])


def render_families(families: Iterable[Metric]) -> str:
    """Return the text exposition of metrics; those without samples are omitted."""
    return generate_latest(_FixedCollector([family for family in families if family.samples])).decode()


class _FixedCollector(NamedTuple):
    """Collector of metrics that are already computed."""

    families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self.families


def build_gauge(
    name: str, help_text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float | None]]
) -> Metric:
    """Return a gauge with the samples (label values, value) that have a value."""
    family = GaugeMetricFamily(f"nutch2py_{name}", help_text, labels=labels)
    for label_values, value in samples:
        if value is not None:
            family.add_metric(label_values, value)
    return family


def _job_metrics(crawl: str, entries: Sequence[JobEntry]) -> Iterator[Metric]:
    finished = [entry for entry in entries if entry.state != JobState.RUNNING]
    newest, newest_over = _first_by_job(entries), _first_by_job(finished)
    succeeded = _first_by_job([entry for entry in finished if entry.state == JobState.FINISHED])
    by_job = ("crawl", JOB_LABEL)
    for number, metric in enumerate(LAST_JOB_METRICS):
        of = newest_over if number else newest
        values = [((crawl, job), metric.get_value(entry)) for job, entry in of.items()]
        yield build_gauge(metric.name, metric.help_text, by_job, values)
    help_text = "End time of the newest successful job."
    ends = [((crawl, job), _seconds(entry.finish_time)) for job, entry in succeeded.items()]
    yield build_gauge("job_last_success_timestamp_seconds", help_text, by_job, ends)
    running = [entry for entry in entries if entry.state == JobState.RUNNING]
    for metric in RUNNING_JOB_METRICS:
        by_id = [((crawl, e.job, e.batch_id, e.id), metric.get_value(e)) for e in running]
        yield build_gauge(metric.name, metric.help_text, (*by_job, "batch", "id"), by_id)
    numbers = sorted(Counter((crawl, entry.job, str(entry.state)) for entry in entries).items())
    help_text = f"Jobs by state, of the newest {_MAX_ENTRIES} log entries."
    yield build_gauge("jobs_logged", help_text, (*by_job, "state"), numbers)
    groups = {group for group, _, _ in FETCH_HISTOGRAMS.values()}
    groups |= {HOSTS_GROUP, HOST_TIMES_GROUP}  # hosts would make unbounded labels
    counters = [
        ((crawl, job, group, name), amount)
        for job, entry in newest_over.items()
        for group, names in sorted(entry.counters.items())
        if group not in groups
        for name, amount in sorted(names.items())
    ]
    help_text = "Counters of the newest finished job."
    yield build_gauge("job_last_counter", help_text, (*by_job, "group", "name"), counters)
    for name, (group, factor, help_text) in FETCH_HISTOGRAMS.items():
        fetch = next((entry for entry in finished if group in entry.counters), None)
        if fetch is not None:
            yield _build_histogram(name, help_text, crawl, fetch.counters[group], factor)


def _build_histogram(name: str, help_text: str, crawl: str, counts: Mapping[str, int], factor: float) -> Metric:
    """Return a histogram; ``counts``: by upper bound of the bucket, with the overflow bucket and the sum."""
    buckets = [*from_job_counters(counts).iter_buckets()]
    uppers = ["+Inf" if math.isinf(bucket.high) else f"{bucket.high * factor:.15g}" for bucket in buckets]
    numbers = accumulate(bucket.value_count for bucket in buckets)
    family = HistogramMetricFamily(f"nutch2py_{name}", help_text, labels=("crawl",))
    family.add_metric((crawl,), [*zip(uppers, numbers, strict=True)], counts.get(SUM_KEY, 0) * factor)
    return family


def _table_metrics(crawl: str, stats: TableStats | None) -> Iterator[Metric]:
    if stats is None:
        return
    table = ("crawl",)
    counted_at = _seconds(stats.counted_at)
    yield build_gauge("table_figures_timestamp_seconds", "Time of the row count.", table, [((crawl,), counted_at)])
    yield build_gauge("table_rows", "Rows of the table.", table, [((crawl,), stats.rows)])
    by_status = [((crawl, name), count) for name, count in stats.status.items()]
    yield build_gauge("table_rows_by_status", "Rows by status.", (*table, "status"), by_status)
    yield build_gauge("table_rows_due", "Rows due for fetching, up to 100000.", table, [((crawl,), stats.due)])
    if stats.score is not None:
        scores = [((crawl, of), score) for of, score in zip(_SCORE_LABELS, stats.score, strict=True)]
        yield build_gauge("table_score", "Minimum, mean and maximum of the score.", (*table, "of"), scores)


def _first_by_job(entries: Sequence[JobEntry]) -> dict[str, JobEntry]:
    """Return the first entry of each job name."""
    found: dict[str, JobEntry] = {}
    for entry in entries:
        found.setdefault(entry.job, entry)
    return found
