"""Request and job metrics of the server for Prometheus."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable

from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessState
from nutch2py.search.search_worker.search_metrics import SearchMetrics
from nutch2py.version import __version__


class ServerMetrics:
    """Metrics since the start of the server. Labels are paths of operations, so that their number is bounded."""

    def __init__(self, search_metrics: SearchMetrics) -> None:
        self._search_metrics = search_metrics
        self._lock = threading.Lock()
        self._start_time = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str]] = Counter()

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self._requests[method, path, status] += 1
            self._seconds[method, path] += seconds  # type: ignore[assignment]  # a Counter adds them as well

    def render(self, jobs: Iterable[JobProcess]) -> str:
        """Return the metrics in Prometheus' text format."""
        from prometheus_client.core import CounterMetricFamily  # slow import

        from nutch2py.joblog.prometheus_metrics import build_gauge, render_families

        states = Counter(child.state for child in jobs)
        requests = CounterMetricFamily(
            "nutch2py_requests", "Requests by method, path and status.", labels=("method", "path", "status")
        )
        durations = CounterMetricFamily(
            "nutch2py_request_seconds", "Seconds that requests took, by method and path.", labels=("method", "path")
        )
        with self._lock:
            for (method, path, status), number in sorted(self._requests.items()):
                requests.add_metric((method, path, str(status)), number)
            for labels, seconds in sorted(self._seconds.items()):
                durations.add_metric(labels, seconds)
        counts = self._search_metrics.counts()
        searches = CounterMetricFamily(
            "nutch2py_searches", "Searches of the embedded index by process and outcome.", labels=("process", "outcome")
        )
        search_seconds = CounterMetricFamily(
            "nutch2py_search_seconds", "Seconds that searches took, waiting included.", labels=("process",)
        )
        for pair, number in sorted(counts.searches.items()):
            searches.add_metric(pair, number)
        for process, elapsed in counts.seconds.items():
            search_seconds.add_metric((process,), elapsed)
        cpu_help, starts_help = "CPU seconds of expensive searches in workers.", "Starts of workers."
        start_help = "When the server began, in seconds since 1970."
        by_state = [((str(state),), states[state]) for state in JobProcessState]
        return render_families(
            [
                build_gauge("info", "The version of the program.", ("version",), [((__version__,), 1)]),
                build_gauge("server_start_time_seconds", start_help, (), [((), self._start_time)]),
                build_gauge("jobs", "Jobs of the server by state.", ("state",), by_state),
                requests,
                durations,
                searches,
                search_seconds,
                CounterMetricFamily("nutch2py_search_worker_cpu_seconds", cpu_help, value=counts.cpu_seconds),
                CounterMetricFamily("nutch2py_search_worker_starts", starts_help, value=counts.starts),
                build_gauge(
                    "search_worker_calls", "Expensive searches that run or wait now.", (), [((), counts.waiting)]
                ),
            ]
        )
