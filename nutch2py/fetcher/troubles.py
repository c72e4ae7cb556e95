"""Which hosts a fetch had trouble with: for each reason how often, and the hosts that it happened with most."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from nutch2py.cells import ProtocolStatus
from nutch2py.fetcher.answer import Answer
from nutch2py.url.parts import host_of
from nutch2py.webpage import ProtocolStatusCode as Code

HOSTS_GROUP, HTTP_GROUP = "fetch_hosts", "fetch_http_errors"
"""The groups of counters in which a fetch gives them to the job log: ``<reason> <host>``, and statuses of HTTP."""
HTTP = "http_"
"""What begins the reasons that are a status of HTTP."""
FINE = frozenset({Code.SUCCESS, Code.NOTMODIFIED, Code.MOVED, Code.TEMP_MOVED})
"""Statuses of pages with which nothing was the matter."""
_TOLD = 5  # hosts of a reason that are told
_HELD = 500  # hosts of a reason that are counted; more is what nobody can look after one by one
_LONGEST = 100  # characters of a host


class Troubles:
    """Counts by reason; a host that trouble begins with when many others had it already may be missing."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def judge(self, url: str, answer: Answer, status: ProtocolStatus) -> None:
        """Count an answer by the kind of its failure, its protocol status or its status of HTTP, unless it was good."""
        if answer.failure is not None:
            self.add(answer.failure.kind.value, url)
        elif status.code == Code.EXCEPTION:
            self.add(f"{HTTP}{answer.status}", url)
        elif status.code not in FINE:
            self.add(Code(status.code).name, url)

    def add(self, reason: str, url: str, count: int = 1) -> None:
        """Count that a URL, and perhaps others of its host, were not fetched for a reason."""
        self.counts[reason] += count
        try:
            host = host_of(url)
        except ValueError:
            return
        if host:
            self._add(reason, host[:_LONGEST].encode("utf-8", "replace").decode(), count)

    def _add(self, reason: str, host: str, count: int) -> None:
        hosts = self._hosts[reason]
        hosts[host] += count
        if len(hosts) > _HELD:
            self._hosts[reason] = Counter(dict(hosts.most_common(_HELD // 2)))

    def told(self) -> list[tuple[str, list[Any]]]:
        """Return (reason, [how often, {host: how often}]) in a form that JSON carries; :meth:`take` reads it."""
        hosts = self._hosts
        return [(reason, [count, dict(hosts[reason].most_common(_TOLD))]) for reason, count in self.counts.items()]

    def take(self, reason: str, counted: list[Any]) -> None:
        """Add what another one told."""
        count, hosts = counted
        self.counts[reason] += count
        for host, amount in hosts.items():
            self._add(reason, host, amount)

    def counters(self) -> dict[str, dict[str, int]]:
        """Return them as groups of counters; those that are empty are left out."""
        http = {name.removeprefix(HTTP): count for name, count in self.counts.items() if name.startswith(HTTP)}
        hosts = {
            f"{reason} {host}": count
            for reason, found in self._hosts.items()
            for host, count in found.most_common(_TOLD)
        }
        return {group: names for group, names in ((HTTP_GROUP, http), (HOSTS_GROUP, hosts)) if names}
