"""Response times by host, of the hosts with the slowest responses."""

from __future__ import annotations

from typing import NamedTuple

from nutch2py.support.formatting import valid_utf8
from nutch2py.url.url_parts import host_of

HOST_TIMES_GROUP = "fetch_host_times"
"""Counter group in the job log: ``responses <host>`` and ``ms <host>``, their total time."""
HOST_TIMES_RECORD = "host_times"
"""Name of the record of :meth:`HostTimes.to_records`."""
RESPONSES_COUNTER, TIME_COUNTER = "responses", "ms"
_MAX_REPORTED_HOSTS = 10
_MAX_COUNTED_HOSTS = 1000
_MAX_HOST_LENGTH = 100  # characters


class HostTime(NamedTuple):
    """Number of responses of a host, and their total time in milliseconds."""

    responses: int
    milliseconds: int

    @property
    def mean(self) -> float:
        """Mean time of a response, in milliseconds."""
        return self.milliseconds / max(self.responses, 1)


class HostTimes:
    """Sums response times by host; of very many hosts, only the slowest stay."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostTime] = {}

    def add(self, url: str, milliseconds: int) -> None:
        """Count a response."""
        try:
            host = host_of(url)
        except ValueError:
            return
        if host:
            self._add_host(valid_utf8(host[:_MAX_HOST_LENGTH]), HostTime(1, milliseconds))

    def _add_host(self, host: str, time: HostTime) -> None:
        known = self.hosts.get(host, HostTime(0, 0))
        self.hosts[host] = HostTime(known.responses + time.responses, known.milliseconds + time.milliseconds)
        if len(self.hosts) > _MAX_COUNTED_HOSTS:
            self.hosts = dict(self._slowest(_MAX_COUNTED_HOSTS // 2))

    def _slowest(self, limit: int) -> list[tuple[str, HostTime]]:
        return sorted(self.hosts.items(), key=lambda each: (-each[1].mean, each[0]))[:limit]

    def to_records(self) -> list[tuple[str, dict[str, list[int]]]]:
        """Return the slowest hosts in a form that JSON can carry; see :meth:`merge_record`."""
        slowest = {host: [*time] for host, time in self._slowest(_MAX_REPORTED_HOSTS)}
        return [(HOST_TIMES_RECORD, slowest)] if slowest else []

    def merge_record(self, hosts: dict[str, list[int]]) -> None:
        """Add a record of :meth:`to_records`."""
        for host, (responses, milliseconds) in hosts.items():
            self._add_host(host, HostTime(responses, milliseconds))

    def to_counters(self) -> dict[str, dict[str, int]]:
        """Return the counter group, empty without responses."""
        counters: dict[str, int] = {}
        for host, time in self._slowest(_MAX_REPORTED_HOSTS):
            counters |= {f"{RESPONSES_COUNTER} {host}": time.responses, f"{TIME_COUNTER} {host}": time.milliseconds}
        return {HOST_TIMES_GROUP: counters} if counters else {}
