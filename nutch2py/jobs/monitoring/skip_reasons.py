"""Skip reasons: turns counters of jobs into messages on skipped URLs, with properties, remedies and hosts.

The summary of ``crawl``, the control room, the report and ``doctor`` share these messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.fetcher.stats.host_failures import HOSTS_GROUP, HTTP_GROUP, HTTP_REASON_PREFIX
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.mapreduce.driver import JobResult
from nutch2py.plugins.plugin_failures import PLUGIN_FAILURES_GROUP
from nutch2py.url.display_url import display_host
from nutch2py.url.filters.url_filters import MALFORMED, META_REFRESH, NOFOLLOW, REDIRECT, SKIPPED_LINKS_GROUP

ADDRESS_FILTER_PROPERTY = "http.filter.ipaddress.exclude"
FETCH_GROUP, GENERATE_GROUP, INJECT_GROUP, PARSE_GROUP, INDEX_GROUP, UPDATE_GROUP, TABLE_GROUP = (
    "FetcherStatus", "generator", "injector", "ParserStatus", "IndexerStatus", "updatedb", "table"
)  # fmt: skip
_MAX_SHOWN_HOSTS = 3  # hosts
_RECENT_MS = 86_400_000  # ms before the newest job; older jobs are not reported


class SkipReason(NamedTuple):
    """Reason why URLs were skipped.

    Attributes:
        description: Message, to follow a number.
        remedy: Deciding properties or next steps, "" for none.
        is_fixable: The cause is probably in the local configuration or environment.
    """

    description: str
    remedy: str = ""
    is_fixable: bool = False


class SkippedUrls(NamedTuple):
    """``number`` URLs, links or pages skipped for one reason; ``hosts``: (host, count), highest count first."""

    number: int
    reason: SkipReason
    hosts: tuple[tuple[str, int], ...] = ()

    @property
    def hosts_text(self) -> str:
        """Hosts with their counts, "" for none."""
        more = ", …" if len(self.hosts) > _MAX_SHOWN_HOSTS else ""
        return ", ".join(f"{display_host(host)} ({count:,})" for host, count in self.hosts[:_MAX_SHOWN_HOSTS]) + more

    def __str__(self) -> str:
        """Return the message without the number."""
        text = self.reason.description + (f": {self.hosts_text}" if self.hosts else "")
        return text + (f" ({self.reason.remedy})" if self.reason.remedy else "")


_RETRIED_LATER = ", retried later"
_DEFERRED = "URLs deferred to a later round"
_MALFORMED_KEY = SkipReason("rows with an invalid row key", "nutch2py checktable", is_fixable=True)
FETCH_REASONS = {
    "ROBOTS_DENIED": SkipReason(
        "URLs disallowed by robots.txt",
        "matched against http.agent.name and http.robots.agents; http.robot.rules.allowlist skips robots.txt on your "
        "own hosts",
    ),
    "ROBOTS_DENIED_MAXCRAWLDELAY": SkipReason(
        "URLs skipped, crawl delay in robots.txt too long", "fetcher.max.crawl.delay, in seconds"
    ),
    "NOTFOUND": SkipReason("URLs not found (404)"),
    "GONE": SkipReason("URLs gone (410, 400)"),
    "ACCESS_DENIED": SkipReason("URLs that require a login (401)", "set logins in http.auth.file"),
    "FAILED": SkipReason("URLs failed with an internal error", "see the log of fetch", is_fixable=True),
    "robots_defer_visits_dropped": SkipReason(
        f"{_DEFERRED}, server error (5xx) for robots.txt",
        "http.robots.503.defer.visits, and its .delay and .retries",
    ),
    "AboveExceptionThresholdInQueue": SkipReason(
        f"{_DEFERRED}, too many failures of the server", "fetcher.max.exceptions.per.queue"
    ),
    "AboveMaxRetryAfter": SkipReason(f"{_DEFERRED}, Retry-After of the server too long", "fetcher.max.retry.after"),
    "AboveMaxPagesInQueue": SkipReason(f"{_DEFERRED}, page limit per host reached", "fetcher.max.pages.per.queue"),
    "AboveMaxTroubleInQueue": SkipReason(
        f"{_DEFERRED}, server slow or failing for too long", "fetcher.max.trouble.per.queue"
    ),
    "HostHeld": SkipReason(
        f"{_DEFERRED}, their server failed or asked to wait while all other hosts were complete", "fetcher.hold.seconds"
    ),
    "LastHosts": SkipReason(f"{_DEFERRED}, of the last hosts with pages left", "fetcher.tail.seconds"),
    "HitByTimeLimit-QueueFeeder": SkipReason(f"{_DEFERRED}, fetch time limit reached", "fetcher.timelimit.mins"),
    "HitByTimeLimit-Queues": SkipReason(
        f"{_DEFERRED}, fetch time limit reached for queued URLs", "fetcher.timelimit.mins"
    ),
    "hitByThrougputThreshold": SkipReason(
        f"{_DEFERRED}, throughput below the threshold", "fetcher.throughput.threshold.pages"
    ),
    "malformed_key": _MALFORMED_KEY,
}
"""Counter of fetch -> reason: protocol statuses and deferred URLs."""
FAILURE_REASONS = {
    FailureKind.ADDRESS_FILTER: SkipReason(
        f"URLs blocked by the address filter{_RETRIED_LATER}",
        f"allow private addresses with -D {ADDRESS_FILTER_PROPERTY}=",
        is_fixable=True,
    ),
    FailureKind.DNS_UNAVAILABLE: SkipReason(
        f"URLs not resolved, no DNS server answered{_RETRIED_LATER}", "check http.dns.servers", is_fixable=True
    ),
    FailureKind.NETWORK: SkipReason(
        f"URLs failed, this machine has no network route{_RETRIED_LATER}",
        "set http.proxy.host if a proxy is required",
        is_fixable=True,
    ),
    FailureKind.PROXY: SkipReason(
        f"URLs failed, the proxy cannot be used{_RETRIED_LATER}",
        "check http.proxy.host and http.proxy.port",
        is_fixable=True,
    ),
    FailureKind.TLS_SETUP: SkipReason(
        f"URLs failed, TLS files of this machine cannot be used{_RETRIED_LATER}",
        "install certificates, or -D http.tls.certificates.check=false",
        is_fixable=True,
    ),
    FailureKind.PROTOCOL_DISABLED: SkipReason(
        f"URLs with a protocol whose plug-in is disabled{_RETRIED_LATER}", "plugin.includes.add", is_fixable=True
    ),
    FailureKind.DISK: SkipReason(
        f"URLs failed, a disk of this machine cannot be used{_RETRIED_LATER}", "check the disk", is_fixable=True
    ),
    FailureKind.DNS: SkipReason(f"URLs failed to resolve{_RETRIED_LATER}", "check http.dns.servers", is_fixable=True),
    FailureKind.REFUSED: SkipReason(f"URLs failed, connection refused{_RETRIED_LATER}"),
    FailureKind.CONNECT: SkipReason(
        f"URLs failed, server unreachable{_RETRIED_LATER}", "set http.proxy.host if a proxy is required"
    ),
    FailureKind.SOCKET: SkipReason(
        f"URLs failed, no free socket on this machine{_RETRIED_LATER}",
        "raise ulimit -n, or lower fetcher.threads.fetch",
        is_fixable=True,
    ),
    FailureKind.CLOSED: SkipReason(f"URLs failed, connection closed by the server{_RETRIED_LATER}"),
    FailureKind.TLS: SkipReason(
        f"URLs failed, untrusted TLS certificate{_RETRIED_LATER}", "-D http.tls.certificates.check=false"
    ),
    FailureKind.TIMEOUT: SkipReason(f"URLs failed, timeout{_RETRIED_LATER}", "http.timeout, in milliseconds"),
    FailureKind.PROTOCOL: SkipReason(f"URLs failed, invalid HTTP response{_RETRIED_LATER}"),
    FailureKind.LIMIT: SkipReason(
        f"URLs failed, over a limit{_RETRIED_LATER}", "readdb -url URL shows which, such as http.time.limit"
    ),
    FailureKind.URL: SkipReason(f"URLs malformed{_RETRIED_LATER}"),
    FailureKind.SCHEME: SkipReason(
        f"URLs with a protocol without plug-in{_RETRIED_LATER}", "plugin.includes.add", is_fixable=True
    ),
    FailureKind.ROBOTS: SkipReason(
        f"URLs deferred, robots.txt unavailable{_RETRIED_LATER}", "http.robots.503.defer.visits"
    ),
    FailureKind.BROWSER: SkipReason(f"URLs failed to render{_RETRIED_LATER}", "readdb -url URL shows why"),
    FailureKind.OTHER: SkipReason(f"URLs failed{_RETRIED_LATER}", "readdb -url URL shows why"),
}
_HTTP_ERROR = f"URLs failed, HTTP error{_RETRIED_LATER}"
HTTP_REMEDIES = {
    "403": "the server denies access, by http.agent.name or by IP address",
    "406": "http.accept and http.accept.language",
    "407": "http.proxy.username and http.proxy.password",
    "429": "too many requests: raise fetcher.server.delay",
    "503": "server overloaded or down, or too many requests: raise fetcher.server.delay",
}
"""Advice by HTTP status."""
JOB_REASONS = {
    GENERATE_GROUP: {
        "filtered": SkipReason(
            "known URLs rejected by the current URL filters", "nutch2py filterchecker", is_fixable=True
        ),
        "too_distant": SkipReason("URLs too many links from a seed", "generate.max.distance; crawl -depth"),
        "score_too_low": SkipReason("URLs with a score too low", "generate.min.score"),
        "over_max_count": SkipReason(f"{_DEFERRED}, batch limit per host reached", "generate.max.count"),
        "malformed_key": _MALFORMED_KEY,
    },
    INJECT_GROUP: {
        "urls_filtered": SkipReason(
            "seeds rejected by a normalizer or a URL filter", "nutch2py filterchecker", is_fixable=True
        ),
        "faults": SkipReason("invalid seed lines", "see the log of inject", is_fixable=True),
    },
    PARSE_GROUP: {
        "failed": SkipReason("pages fetched but not parsed, no parser succeeded", "readdb -url URL shows why"),
        "truncated": SkipReason(
            "pages truncated and not parsed", "http.content.limit; parser.skip.truncated parses them"
        ),
        "malformed_key": _MALFORMED_KEY,
    },
    INDEX_GROUP: {
        "rejected": SkipReason("documents rejected by the index", "see the log of index", is_fixable=True),
        "failed": SkipReason("pages not indexed, a plug-in failed", "plugin.includes", is_fixable=True),
        "skipped": SkipReason(
            "pages without a document (noindex, redirects, duplicates, indexing filters)",
            "nutch2py indexchecker URL",
        ),
    },
    UPDATE_GROUP: {
        "rows_not_allowed": SkipReason("linked pages not added", "db.update.additions.allowed", is_fixable=True),
        "malformed_links": SkipReason("links skipped, invalid URL"),
        "malformed_keys": _MALFORMED_KEY,
        "pages_failed": SkipReason("pages not updated, a plug-in failed", "plugin.includes", is_fixable=True),
    },
    TABLE_GROUP: {
        "rows_refused": SkipReason("rows too large for the store", "hbase.client.keyvalue.maxsize", is_fixable=True),
        "rows_unreadable": SkipReason("rows with an unreadable cell", "nutch2py checktable", is_fixable=True),
    },
}
"""Skip reasons by counter group and counter of the jobs other than fetch."""
_REJECTED_REDIRECT = SkipReason(
    "redirects skipped, to themselves or to filtered URLs",
    "the URL filters, db.ignore.external.links; crawl -stay",
)
LINK_REASONS = {
    MALFORMED: SkipReason("links skipped, invalid URL"),
    NOFOLLOW: SkipReason("links skipped, nofollow on the link or page"),
    REDIRECT: _REJECTED_REDIRECT,
    META_REFRESH: _REJECTED_REDIRECT._replace(description=f"{_REJECTED_REDIRECT.description}, by a meta element"),
    "db.ignore.external.links": SkipReason(
        "links skipped, to other sites",
        "db.ignore.external.links and its mode; crawl -stay",
    ),
    "db.ignore.internal.links": SkipReason("links skipped, within their site", "db.ignore.internal.links"),
    "db.max.outlinks.per.page": SkipReason("links skipped, too many on their page", "db.max.outlinks.per.page"),
    "sitemap.strict.parsing": SkipReason(
        "sitemap URLs skipped, outside the folder of their sitemap", "sitemap.strict.parsing"
    ),
}
"""Skip reasons of outlinks by counter."""


def sum_recent_counters(entries: Sequence[JobEntry]) -> CounterTotals:
    """Sum the counters of the jobs within a day before the newest; ``entries``: newest first.

    generate and inject read the same rows and seeds in every run, so only the last run of each counts.
    """
    totals, counted_jobs = CounterTotals(), set[str]()
    for entry in entries:
        if entry.start_time < entries[0].start_time - _RECENT_MS:
            break
        counters = {group: dict(names) for group, names in entry.counters.items()}
        if entry.job == "generate" and entry.job not in counted_jobs:
            totals.generate_counters = counters.get(GENERATE_GROUP, {})
        if entry.job not in ("generate", "inject") or entry.job not in counted_jobs:
            totals.add(JobResult(counters))
        counted_jobs.add(entry.job)
    return totals


def iter_skipped_urls(totals: CounterTotals, conf: Configuration) -> Iterator[SkippedUrls]:
    """Yield the skipped URLs by reason, in the order fetch, links, generate, inject, parse, index, updatedb, table."""
    hosts = _group_hosts_by_reason(totals.totals.group(HOSTS_GROUP))
    redirected = totals.redirected_count - totals.totals.count(SKIPPED_LINKS_GROUP, REDIRECT)
    yield from _skip_if_any(max(redirected, 0), SkipReason("URLs redirected, their targets are fetched instead"))
    for name, reason in FETCH_REASONS.items():
        yield from _skip_if_any(totals.get_fetch_counter(name), reason, hosts.get(name, ()))
    for kind, count in sorted(totals.count_failures_by_kind().items(), key=lambda each: -each[1]):
        if kind in FAILURE_REASONS:
            yield SkippedUrls(count, FAILURE_REASONS[FailureKind(kind)], hosts.get(kind, ()))
        else:
            yield from _iter_http_errors(count, totals, hosts)
    for name, count in sorted(totals.totals.group(SKIPPED_LINKS_GROUP).items(), key=lambda each: -each[1]):
        yield from _skip_if_any(count, _find_link_reason(name, conf))
    for group, reasons in JOB_REASONS.items():
        counts = totals.generate_counters if group == GENERATE_GROUP else totals.totals.group(group)
        for name, reason in reasons.items():
            yield from _skip_if_any(counts.get(name, 0), reason)
    for plugin, count in sorted(totals.totals.group(PLUGIN_FAILURES_GROUP).items()):
        message = f"pages failed in the plug-in {plugin}"
        yield SkippedUrls(
            count, SkipReason(message, "fix it, or remove it from plugin.includes; see the log", is_fixable=True)
        )


def _skip_if_any(count: int, reason: SkipReason, hosts: tuple[tuple[str, int], ...] = ()) -> Iterator[SkippedUrls]:
    if count:
        yield SkippedUrls(count, reason, hosts)


def _iter_http_errors(
    count: int, totals: CounterTotals, hosts: Mapping[str, tuple[tuple[str, int], ...]]
) -> Iterator[SkippedUrls]:
    """Yield HTTP errors by status; those of older logs, without status, together."""
    for status, amount in sorted(totals.totals.group(HTTP_GROUP).items(), key=lambda each: -each[1]):
        remedy = HTTP_REMEDIES.get(status, "readdb -url URL shows the response")
        reason = SkipReason(_HTTP_ERROR.replace("error", f"error {status}", 1), remedy, status in ("403", "407"))
        yield SkippedUrls(amount, reason, hosts.get(f"{HTTP_REASON_PREFIX}{status}", ()))
        count -= amount
    yield from _skip_if_any(max(count, 0), SkipReason(_HTTP_ERROR, "readdb -url URL shows which"))


def _find_link_reason(name: str, conf: Configuration) -> SkipReason:
    """Return why links were skipped; ``name``: a property, or the id of a URL filter."""
    if name in LINK_REASONS:
        return LINK_REASONS[name]
    if not name.startswith("urlfilter-"):
        is_property = name.count(".") > 1
        return SkipReason(
            "links skipped, too long" if is_property else f"links rejected by the URL filter {name}",
            name if is_property else "",
        )
    point = name.replace("-", ".", 1)
    file = conf.get_trimmed(f"{point}.file")
    path = conf.resource(file) if file else None
    source = f"property {point}.rules" if conf.get(f"{point}.rules") else str(path) if path else "plugin.includes"
    return SkipReason(f"links rejected by the URL filter {name}", f"{source}; nutch2py filterchecker checks a URL")


def _group_hosts_by_reason(counts: Mapping[str, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return (host, count) by reason, highest count first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, count in sorted(counts.items(), key=lambda each: -each[1]):
        reason, _, host = name.partition(" ")
        found.setdefault(reason, []).append((host, count))
    return {reason: tuple(hosts) for reason, hosts in found.items()}
