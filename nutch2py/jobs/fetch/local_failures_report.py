"""Reports the pages of a fetch that failed for a reason of this machine, and ends the job when they are too many."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LocalFailuresError
from nutch2py.fetcher.output.page_updater import LOCAL_RETRY_PROPERTY, local_retry_ms
from nutch2py.fetcher.protocols.address_filter import EXCLUDE_PROPERTY, INCLUDE_PROPERTY
from nutch2py.fetcher.protocols.fetch_response import LOCAL_KINDS, FailureKind
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.mapreduce.driver import JobResult
from nutch2py.support.formatting import format_duration

SHARE_PROPERTY = "fetcher.local.failure.share"
_DESCRIPTIONS = {
    FailureKind.ADDRESS_FILTER: "blocked by the address filter",
    FailureKind.DNS_UNAVAILABLE: "no DNS server answered (http.dns.servers)",
    FailureKind.NETWORK: "no network route (http.proxy.host, if a proxy is required)",
    FailureKind.PROXY: "the proxy cannot be used (http.proxy.host, http.proxy.port)",
    FailureKind.SOCKET: "no free socket (fetcher.threads.fetch, ulimit -n)",
    FailureKind.TLS_SETUP: "TLS files cannot be used (http.tls.certificates.check)",
    FailureKind.PROTOCOL_DISABLED: "protocol disabled (plugin.includes)",
    FailureKind.DISK: "a disk cannot be used",
}
"""Reasons with the properties that decide."""


def describe_local_failures(conf: Configuration, totals: CounterTotals) -> str:
    """Return the number of pages that failed for reasons of this machine, the reasons and properties; "" for none."""
    if not totals.local_failure_count:
        return ""
    kinds = {FailureKind(name): count for name, count in totals.count_failures_by_kind().items() if name in LOCAL_KINDS}
    reasons = "; ".join(
        f"{count:,} {_describe_kind(conf, kind)}" for kind, count in sorted(kinds.items(), key=lambda each: -each[1])
    )
    interval = format_duration(local_retry_ms(conf))
    return (
        f"{totals.local_failure_count:,} of {totals.attempted_count:,} pages not fetched for reasons of this machine "
        f"or its configuration: {reasons}. They keep their status and are due again in {interval} "
        f"({LOCAL_RETRY_PROPERTY})"
    )


def check_local_failures(conf: Configuration, totals: CounterTotals, max_share: float | None = None) -> None:
    """Raise LocalFailuresError when more than ``max_share`` of the pages failed locally.

    ``max_share``: None for ``fetcher.local.failure.share``.
    """
    share = conf.get_float(SHARE_PROPERTY, 0.5) if max_share is None else max_share
    if totals.local_failure_count > share * totals.attempted_count:
        raise LocalFailuresError(
            f"{describe_local_failures(conf, totals)}: more than {SHARE_PROPERTY} ({share:g}); what was fetched is kept"
        )


def totals_of(result: JobResult) -> CounterTotals:
    """Return the totals of one job."""
    totals = CounterTotals()
    totals.add(result)
    return totals


def _describe_kind(conf: Configuration, kind: FailureKind) -> str:
    if kind is not FailureKind.ADDRESS_FILTER:
        return _DESCRIPTIONS[kind]
    names = [name for name in (EXCLUDE_PROPERTY, INCLUDE_PROPERTY) if conf.get_strings(name)]
    return f"{_DESCRIPTIONS[kind]} ({', '.join(names) or EXCLUDE_PROPERTY})"
