"""Failures of a fetch by reason, with the hosts most affected."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.support.formatting import valid_utf8
from nutch2py.url.url_parts import host_of

HOSTS_GROUP, HTTP_GROUP = "fetch_hosts", "fetch_http_errors"
"""Counter groups in the job log: ``<reason> <host>``, and HTTP status codes."""
HTTP_REASON_PREFIX = "http_"
"""Prefix of reasons that are HTTP status codes."""
GOOD_STATUSES = frozenset({Code.SUCCESS, Code.NOTMODIFIED, Code.MOVED, Code.TEMP_MOVED})
"""Protocol statuses that are no failure."""
_MAX_REPORTED_HOSTS = 5  # hosts reported per reason
_MAX_COUNTED_HOSTS = 500  # hosts counted per reason
_MAX_HOST_LENGTH = 100  # characters


class HostFailures:
    """Counts failures by reason and host; a host that fails late may be missing among many others."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def count_response(self, url: str, response: FetchResponse, status: ProtocolStatus) -> None:
        """Count a response by failure kind, protocol status or HTTP status, unless it was successful."""
        if response.failure is not None:
            self.add(response.failure.kind.value, url)
        elif status.code == Code.EXCEPTION:
            self.add(f"{HTTP_REASON_PREFIX}{response.status}", url)
        elif status.code not in GOOD_STATUSES:
            self.add(Code(status.code).name, url)

    def add(self, reason: str, url: str, count: int = 1) -> None:
        """Count URLs of a host that were not fetched for a reason."""
        self.counts[reason] += count
        try:
            host = host_of(url)
        except ValueError:
            return
        if host:
            self._add_host(reason, valid_utf8(host[:_MAX_HOST_LENGTH]), count)

    def _add_host(self, reason: str, host: str, count: int) -> None:
        hosts = self._hosts[reason]
        hosts[host] += count
        if len(hosts) > _MAX_COUNTED_HOSTS:
            self._hosts[reason] = Counter(dict(hosts.most_common(_MAX_COUNTED_HOSTS // 2)))

    def to_records(self) -> list[tuple[str, list[object]]]:
        """Return (reason, [count, {host: count}]) in a form that JSON can carry; see :meth:`merge_record`."""
        hosts = self._hosts
        return [
            (reason, [count, dict(hosts[reason].most_common(_MAX_REPORTED_HOSTS))])
            for reason, count in self.counts.items()
        ]

    def merge_record(self, reason: str, counted: list[Any]) -> None:
        """Add a record of :meth:`to_records`."""
        count, hosts = counted
        self.counts[reason] += count
        for host, amount in hosts.items():
            self._add_host(reason, host, amount)

    def to_counters(self) -> dict[str, dict[str, int]]:
        """Return the non-empty counter groups."""
        http = {
            name.removeprefix(HTTP_REASON_PREFIX): count
            for name, count in self.counts.items()
            if name.startswith(HTTP_REASON_PREFIX)
        }
        hosts = {
            f"{reason} {host}": count
            for reason, host_counts in self._hosts.items()
            for host, count in host_counts.most_common(_MAX_REPORTED_HOSTS)
        }
        return {group: counters for group, counters in ((HTTP_GROUP, http), (HOSTS_GROUP, hosts)) if counters}
