"""What a crawl left out, and why: every reason that jobs count, with what decides it, what to do, and the hosts.

The end of the command ``crawl``, the control room, the report and ``doctor`` say it in these words.
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
from nutch2py.url.filters.url_filters import MALFORMED, META_REFRESH, NOFOLLOW, REDIRECT, SKIPPED_LINKS_GROUP

ADDRESS_FILTER_PROPERTY = "http.filter.ipaddress.exclude"
FETCH_GROUP, GENERATE_GROUP, INJECT_GROUP, PARSE_GROUP, INDEX_GROUP, UPDATE_GROUP, TABLE_GROUP = (
    "FetcherStatus", "generator", "injector", "ParserStatus", "IndexerStatus", "updatedb", "table"
)  # fmt: skip
_MAX_SHOWN_HOSTS = 3  # hosts
_RECENT_MS = 86_400_000  # ms before the newest job in which others are of the same crawl, as people see it


class SkipReason(NamedTuple):
    """Why URLs were left out: what for people, and what decides it or is to be done ("": nothing that is ours to do).

    ``is_fixable``: it is likely to be on this side that something is to be mended.
    """

    description: str
    remedy: str = ""
    is_fixable: bool = False


class SkippedUrls(NamedTuple):
    """A ``number`` of URLs (links, pages), left out for a reason; ``hosts``: those with most of them first."""

    number: int
    reason: SkipReason
    hosts: tuple[tuple[str, int], ...] = ()

    @property
    def hosts_text(self) -> str:
        """The hosts as text, "" for none."""
        more = ", …" if len(self.hosts) > _MAX_SHOWN_HOSTS else ""
        return ", ".join(f"{host} ({count:,})" for host, count in self.hosts[:_MAX_SHOWN_HOSTS]) + more

    def __str__(self) -> str:
        """Return it in a line, without the number."""
        text = self.reason.description + (f": {self.hosts_text}" if self.hosts else "")
        return text + (f" ({self.reason.remedy})" if self.reason.remedy else "")


_RETRIED_LATER = "; they are tried again later"
_IN_NEXT_ROUND = "; a later round takes them"
_MALFORMED_KEY = SkipReason("have a row key that is none", "nutch2py checktable", is_fixable=True)
FETCH_REASONS = {
    "ROBOTS_DENIED": SkipReason(
        "the site's robots.txt denies them to us",
        "it is read for the names in http.agent.name and http.robots.agents; of a host of your own, "
        "http.robot.rules.allowlist passes over it",
    ),
    "ROBOTS_DENIED_MAXCRAWLDELAY": SkipReason(
        "the site's robots.txt asks for longer waits than are accepted", "fetcher.max.crawl.delay, in seconds"
    ),
    "NOTFOUND": SkipReason("are not there (404)"),
    "GONE": SkipReason("are gone (410, 400)"),
    "ACCESS_DENIED": SkipReason("ask for a login (401)", "http.auth.file names logins"),
    "FAILED": SkipReason("met an error of this program", "the log of fetch names it", is_fixable=True),
    "robots_defer_visits_dropped": SkipReason(
        f"wait as the robots.txt of their site was answered with an error (5xx){_IN_NEXT_ROUND}",
        "http.robots.503.defer.visits, and .delay and .retries behind it",
    ),
    "AboveExceptionThresholdInQueue": SkipReason(
        f"wait as their server failed too often{_IN_NEXT_ROUND}", "fetcher.max.exceptions.per.queue"
    ),
    "AboveMaxRetryAfter": SkipReason(
        f"wait as their server asked for a longer pause{_IN_NEXT_ROUND}", "fetcher.max.retry.after"
    ),
    "AboveMaxPagesInQueue": SkipReason(
        f"wait as their host had enough of the round{_IN_NEXT_ROUND}", "fetcher.max.pages.per.queue"
    ),
    "AboveMaxTroubleInQueue": SkipReason(
        f"wait as their server was slow or failed for too long{_IN_NEXT_ROUND}", "fetcher.max.trouble.per.queue"
    ),
    "HitByTimeLimit-QueueFeeder": SkipReason(
        f"wait as the time of a fetch was over{_IN_NEXT_ROUND}", "fetcher.timelimit.mins"
    ),
    "HitByTimeLimit-Queues": SkipReason(
        f"wait as the time of a fetch was over for their host{_IN_NEXT_ROUND}", "fetcher.timelimit.mins"
    ),
    "hitByThrougputThreshold": SkipReason(
        f"wait as a fetch had become too slow{_IN_NEXT_ROUND}", "fetcher.throughput.threshold.pages"
    ),
    "malformed_key": _MALFORMED_KEY,
}
"""By counters of fetch: of protocol statuses, and of what it leaves for later."""
FAILURE_REASONS = {
    FailureKind.ADDRESS_FILTER: SkipReason(
        f"are at addresses that are refused{_RETRIED_LATER}",
        f"to allow private ones: -D {ADDRESS_FILTER_PROPERTY}=",
        is_fixable=True,
    ),
    FailureKind.DNS: SkipReason(
        f"have a host whose name nobody knows{_RETRIED_LATER}", "http.dns.servers chooses who is asked", is_fixable=True
    ),
    FailureKind.REFUSED: SkipReason(f"are of servers that refuse the connection{_RETRIED_LATER}"),
    FailureKind.CONNECT: SkipReason(
        f"are of servers that cannot be reached{_RETRIED_LATER}", "http.proxy.host, if one is needed"
    ),
    FailureKind.SOCKET: SkipReason(
        f"found no socket left on this machine{_RETRIED_LATER}",
        "ulimit -n, fewer fetcher.threads.fetch",
        is_fixable=True,
    ),
    FailureKind.CLOSED: SkipReason(f"are of servers that closed the connection{_RETRIED_LATER}"),
    FailureKind.TLS: SkipReason(
        f"have a certificate that is not to be trusted{_RETRIED_LATER}", "-D http.tls.certificates.check=false"
    ),
    FailureKind.TIMEOUT: SkipReason(f"were not answered in time{_RETRIED_LATER}", "http.timeout, in milliseconds"),
    FailureKind.PROTOCOL: SkipReason(f"were answered with what is no HTTP{_RETRIED_LATER}"),
    FailureKind.LIMIT: SkipReason(
        f"are beyond a limit, which readdb -url URL names{_RETRIED_LATER}", "http.time.limit and others"
    ),
    FailureKind.URL: SkipReason(f"are malformed{_RETRIED_LATER}"),
    FailureKind.SCHEME: SkipReason(
        f"have a protocol that no plug-in speaks{_RETRIED_LATER}", "plugin.includes.add", is_fixable=True
    ),
    FailureKind.ROBOTS: SkipReason(
        f"wait until the robots.txt of their site can be read{_RETRIED_LATER}", "http.robots.503.defer.visits"
    ),
    FailureKind.BROWSER: SkipReason(f"could not be rendered{_RETRIED_LATER}", "readdb -url URL shows why"),
    FailureKind.OTHER: SkipReason(f"failed{_RETRIED_LATER}", "readdb -url URL shows how"),
}
_HTTP_ERROR = f"were answered with an error{_RETRIED_LATER}"
_HTTP_REMEDIES = {
    "403": "the server refuses us: by http.agent.name, or by our address",
    "406": "http.accept and http.accept.language",
    "407": "http.proxy.username and http.proxy.password",
    "429": "we ask too often: fetcher.server.delay",
    "503": "it is down, or we ask too often: fetcher.server.delay",
}
_JOB_REASONS = {
    GENERATE_GROUP: {
        "filtered": SkipReason(
            "that are known are refused by the URL filters now", "nutch2py filterchecker", is_fixable=True
        ),
        "too_distant": SkipReason(
            "are more links from where it began than are to be followed", "generate.max.distance; of crawl, -depth"
        ),
        "score_too_low": SkipReason("have too low a score", "generate.min.score"),
        "over_max_count": SkipReason(f"wait as their host had enough of a batch{_IN_NEXT_ROUND}", "generate.max.count"),
        "malformed_key": _MALFORMED_KEY,
    },
    INJECT_GROUP: {
        "urls_filtered": SkipReason(
            "of the seeds are refused by a normalizer or a URL filter", "nutch2py filterchecker", is_fixable=True
        ),
        "faults": SkipReason("lines of seeds have a fault", "the log of inject names them", is_fixable=True),
    },
    PARSE_GROUP: {
        "failed": SkipReason("came, and no parser can read them", "readdb -url URL shows why"),
        "truncated": SkipReason(
            "came cut off, and were not parsed", "http.content.limit; parser.skip.truncated parses them"
        ),
        "malformed_key": _MALFORMED_KEY,
    },
    INDEX_GROUP: {
        "refused": SkipReason("documents were refused by the index", "the log of index names them", is_fixable=True),
        "failed": SkipReason(
            "pages met an error of a plug-in on their way to the index", "plugin.includes", is_fixable=True
        ),
        "skipped": SkipReason(
            "pages came and are no documents: noindex, redirects, duplicates, indexing filters",
            "nutch2py indexchecker URL",
        ),
    },
    UPDATE_GROUP: {
        "rows_not_allowed": SkipReason(
            "pages that links lead to were not added", "db.update.additions.allowed", is_fixable=True
        ),
        "malformed_links": SkipReason("links are no URLs"),
        "malformed_keys": _MALFORMED_KEY,
        "pages_failed": SkipReason("pages met an error of a plug-in in updatedb", "plugin.includes", is_fixable=True),
    },
    TABLE_GROUP: {
        "rows_refused": SkipReason(
            "rows were too large for the store", "hbase.client.keyvalue.maxsize", is_fixable=True
        ),
        "rows_unreadable": SkipReason("rows have a cell that cannot be read", "nutch2py checktable", is_fixable=True),
    },
}
_REJECTED_REDIRECT = SkipReason(
    "redirects lead to themselves or where no link is followed",
    "the URL filters, db.ignore.external.links; of crawl, -stay",
)
_LINK_REASONS = {
    MALFORMED: SkipReason("links are no URLs"),
    NOFOLLOW: SkipReason("links are nofollow, by their own words or their page's, and were not followed"),
    REDIRECT: _REJECTED_REDIRECT,
    META_REFRESH: _REJECTED_REDIRECT._replace(description=f"{_REJECTED_REDIRECT.description}, by a meta element"),
    "db.ignore.external.links": SkipReason(
        "links lead to other sites, and were not followed",
        "db.ignore.external.links and its mode; of crawl, -stay chooses",
    ),
    "db.ignore.internal.links": SkipReason(
        "links stay within their site, and were not followed", "db.ignore.internal.links"
    ),
    "db.max.outlinks.per.page": SkipReason(
        "links stand behind the first of their page, and were not followed", "db.max.outlinks.per.page"
    ),
    "sitemap.strict.parsing": SkipReason("URLs of sitemaps lie outside their folder", "sitemap.strict.parsing"),
}


def sum_recent_counters(entries: Sequence[JobEntry]) -> CounterTotals:
    """Return what the jobs of the log counted that ended within a day before the newest; ``entries``: that first.

    Of generate and inject, which look at the same rows and seeds again and again, only the last one counts.
    """
    tally, told = CounterTotals(), set[str]()
    for entry in entries:
        if entry.start_time < entries[0].start_time - _RECENT_MS:
            break
        counters = {group: dict(names) for group, names in entry.counters.items()}
        if entry.job == "generate" and entry.job not in told:
            tally.generate_counters = counters.get(GENERATE_GROUP, {})
        if entry.job not in ("generate", "inject") or entry.job not in told:
            tally.add(JobResult(counters))
        told.add(entry.job)
    return tally


def iter_skipped_urls(totals: CounterTotals, conf: Configuration) -> Iterator[SkippedUrls]:
    """Yield what the jobs of a tally left out, by where it happened: fetch, parse, links, generate, index, table.

    What is counted anew by each generate and inject (``tally.left``) is that of the last one.
    """
    hosts = _group_hosts_by_reason(totals.totals.group(HOSTS_GROUP))
    moved = totals.redirected_count - totals.totals.count(SKIPPED_LINKS_GROUP, REDIRECT)
    yield from _skip_if_any(max(moved, 0), SkipReason("lead to other URLs, which are fetched instead"))
    for name, reason in FETCH_REASONS.items():
        yield from _skip_if_any(totals.get_fetch_counter(name), reason, hosts.get(name, ()))
    for kind, count in sorted(totals.count_failures_by_kind().items(), key=lambda each: -each[1]):
        if kind in FAILURE_REASONS:
            yield SkippedUrls(count, FAILURE_REASONS[FailureKind(kind)], hosts.get(kind, ()))
        else:
            yield from _iter_http_errors(count, totals, hosts)
    for name, count in sorted(totals.totals.group(SKIPPED_LINKS_GROUP).items(), key=lambda each: -each[1]):
        yield from _skip_if_any(count, _find_link_reason(name, conf))
    for group, reasons in _JOB_REASONS.items():
        counts = totals.generate_counters if group == GENERATE_GROUP else totals.totals.group(group)
        for name, reason in reasons.items():
            yield from _skip_if_any(counts.get(name, 0), reason)
    for plugin, count in sorted(totals.totals.group(PLUGIN_FAILURES_GROUP).items()):
        met = f"pages met an error of the plug-in {plugin}"
        yield SkippedUrls(
            count, SkipReason(met, "mend it, or take it out of plugin.includes; the log names them", is_fixable=True)
        )


def _skip_if_any(count: int, reason: SkipReason, hosts: tuple[tuple[str, int], ...] = ()) -> Iterator[SkippedUrls]:
    if count:
        yield SkippedUrls(count, reason, hosts)


def _iter_http_errors(
    count: int, totals: CounterTotals, hosts: Mapping[str, tuple[tuple[str, int], ...]]
) -> Iterator[SkippedUrls]:
    """Yield the answers that were errors, by their status; those of a log that tells none together."""
    for status, amount in sorted(totals.totals.group(HTTP_GROUP).items(), key=lambda each: -each[1]):
        repair = _HTTP_REMEDIES.get(status, "readdb -url URL shows the page's")
        reason = SkipReason(f"{_HTTP_ERROR.replace('error', f'error ({status})', 1)}", repair, status in ("403", "407"))
        yield SkippedUrls(amount, reason, hosts.get(f"{HTTP_REASON_PREFIX}{status}", ()))
        count -= amount
    yield from _skip_if_any(max(count, 0), SkipReason(_HTTP_ERROR, "readdb -url URL shows which"))


def _find_link_reason(name: str, conf: Configuration) -> SkipReason:
    """Return why links were left out; ``name``: a property, or the id of a URL filter."""
    if name in _LINK_REASONS:
        return _LINK_REASONS[name]
    if not name.startswith("urlfilter-"):
        known = name.count(".") > 1
        return SkipReason(
            "links are too long" if known else f"links are refused by the URL filter {name}", name if known else ""
        )
    point = name.replace("-", ".", 1)
    file = conf.get_trimmed(f"{point}.file")
    path = conf.resource(file) if file else None
    decides = f"property {point}.rules" if conf.get(f"{point}.rules") else str(path) if path else "plugin.includes"
    return SkipReason(
        f"links are refused by the URL filter {name}", f"{decides}; nutch2py filterchecker tells of a URL"
    )


def _group_hosts_by_reason(counts: Mapping[str, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return hosts with their numbers by reason, the greatest first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, count in sorted(counts.items(), key=lambda each: -each[1]):
        reason, _, host = name.partition(" ")
        found.setdefault(reason, []).append((host, count))
    return {reason: tuple(hosts) for reason, hosts in found.items()}
