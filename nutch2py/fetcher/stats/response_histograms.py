"""Histograms of response times and sizes, and their form in the job log: counters named by the bounds of buckets."""

from __future__ import annotations

from collections.abc import Mapping

from nutch2py.support.histogram import Histogram, HistogramCounter

TIMES_GROUP, SIZES_GROUP = "fetch_time_ms", "fetch_size_bytes"
"""Counter groups of the histograms in the job log."""
OVERFLOW_BUCKET, SUM_KEY = "more", "sum"
"""Counters of values above the last bound, and of the sum of all values; the others are inclusive upper bounds."""
TIME_BOUNDS_MS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
SIZE_BOUNDS_BYTES = tuple(1024 * 4**power for power in range(8))
"""1 kB to 16 MB."""


def response_histogram(bounds: tuple[int, ...]) -> HistogramCounter:
    """Return a counter of responses with the inclusive upper bounds ``bounds``."""
    return HistogramCounter((0, *bounds), upper_inclusive=True)


def to_job_counters(responses: HistogramCounter) -> dict[str, int]:
    """Return the counters for the job log."""
    names = (*(str(bound) for bound in responses.bounds[1:]), OVERFLOW_BUCKET)
    counters = {names[bucket]: count for bucket, count in sorted(responses.counts.items())}
    return {**counters, SUM_KEY: int(responses.total)} if counters else {}


def from_job_counters(counters: Mapping[str, int]) -> Histogram:
    """Return the histogram of the counters of :func:`to_job_counters`, or of their sums over several jobs."""
    bounds = sorted(int(name) for name in counters if name.isdigit())
    counts = (*(counters[str(bound)] for bound in bounds), counters.get(OVERFLOW_BUCKET, 0))
    return Histogram((0.0, *map(float, bounds)), counts)
