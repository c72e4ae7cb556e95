"""Request and job metrics of the server for Prometheus."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable

from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessState
from nutch2py.version import __version__


class ServerMetrics:
    """Metrics since the start of the server. Labels are paths of operations, so that their number is bounded."""

    def __init__(self) -> None:
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
        states = Counter(child.state for child in jobs)
        lines = [
            "# HELP nutch2py_info The version of the program.",
            "# TYPE nutch2py_info gauge",
            f'nutch2py_info{{version="{__version__}"}} 1',
            "# HELP nutch2py_server_start_time_seconds When the server began, in seconds since 1970.",
            "# TYPE nutch2py_server_start_time_seconds gauge",
            f"nutch2py_server_start_time_seconds {self._start_time:.3f}",
            "# HELP nutch2py_jobs Jobs of the server by state.",
            "# TYPE nutch2py_jobs gauge",
            *(f'nutch2py_jobs{{state="{state}"}} {states[state]}' for state in JobProcessState),
            "# HELP nutch2py_requests_total Requests by method, path and status.",
            "# TYPE nutch2py_requests_total counter",
        ]
        with self._lock:
            for (method, path, status), number in sorted(self._requests.items()):
                labels = f'method="{method}",path="{path}",status="{status}"'
                lines.append(f"nutch2py_requests_total{{{labels}}} {number}")
            lines += [
                "# HELP nutch2py_request_seconds_total Seconds that requests took, by method and path.",
                "# TYPE nutch2py_request_seconds_total counter",
            ]
            for (method, path), seconds in sorted(self._seconds.items()):
                lines.append(f'nutch2py_request_seconds_total{{method="{method}",path="{path}"}} {seconds:.6f}')
        return "\n".join([*lines, ""])
