"""Which hosts a fetch had trouble with: for each reason how often, and the hosts that it happened with most."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.url.url_parts import host_of

HOSTS_GROUP, HTTP_GROUP = "fetch_hosts", "fetch_http_errors"
"""The groups of counters in which a fetch gives them to the job log: ``<reason> <host>``, and statuses of HTTP."""
HTTP_REASON_PREFIX = "http_"
"""What begins the reasons that are a status of HTTP."""
GOOD_STATUSES = frozenset({Code.SUCCESS, Code.NOTMODIFIED, Code.MOVED, Code.TEMP_MOVED})
"""Statuses of pages with which nothing was the matter."""
_MAX_REPORTED_HOSTS = 5  # hosts of a reason that are told
_MAX_COUNTED_HOSTS = 500  # hosts of a reason that are counted; more is what nobody can look after one by one
_MAX_HOST_LENGTH = 100  # characters of a host


class HostFailures:
    """Counts by reason; a host that trouble begins with when many others had it already may be missing."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def count_response(self, url: str, response: FetchResponse, status: ProtocolStatus) -> None:
        """Count an answer by the kind of its failure, its protocol status or its status of HTTP, unless it was good."""
        if response.failure is not None:
            self.add(response.failure.kind.value, url)
        elif status.code == Code.EXCEPTION:
            self.add(f"{HTTP_REASON_PREFIX}{response.status}", url)
        elif status.code not in GOOD_STATUSES:
            self.add(Code(status.code).name, url)

    def add(self, reason: str, url: str, count: int = 1) -> None:
        """Count that a URL, and perhaps others of its host, were not fetched for a reason."""
        self.counts[reason] += count
        try:
            host = host_of(url)
        except ValueError:
            return
        if host:
            self._add_host(reason, host[:_MAX_HOST_LENGTH].encode("utf-8", "replace").decode(), count)

    def _add_host(self, reason: str, host: str, count: int) -> None:
        hosts = self._hosts[reason]
        hosts[host] += count
        if len(hosts) > _MAX_COUNTED_HOSTS:
            self._hosts[reason] = Counter(dict(hosts.most_common(_MAX_COUNTED_HOSTS // 2)))

    def to_records(self) -> list[tuple[str, list[Any]]]:
        """Return (reason, [how often, {host: how often}]) in a form that JSON carries; :meth:`take` reads it."""
        hosts = self._hosts
        return [
            (reason, [count, dict(hosts[reason].most_common(_MAX_REPORTED_HOSTS))])
            for reason, count in self.counts.items()
        ]

    def merge_record(self, reason: str, counted: list[Any]) -> None:
        """Add what another one told."""
        count, hosts = counted
        self.counts[reason] += count
        for host, amount in hosts.items():
            self._add_host(reason, host, amount)

    def to_counters(self) -> dict[str, dict[str, int]]:
        """Return them as groups of counters; those that are empty are left out."""
        http = {
            name.removeprefix(HTTP_REASON_PREFIX): count
            for name, count in self.counts.items()
            if name.startswith(HTTP_REASON_PREFIX)
        }
        hosts = {
            f"{reason} {host}": count
            for reason, found in self._hosts.items()
            for host, count in found.most_common(_MAX_REPORTED_HOSTS)
        }
        return {group: names for group, names in ((HTTP_GROUP, http), (HOSTS_GROUP, hosts)) if names}
