"""What a crawl left out, and why: every reason that jobs count, with what decides it, what to do, and the hosts.

The end of the command ``crawl``, the control room, the report and ``doctor`` say it in these words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.fetcher.answer import FailureKind
from nutch2py.fetcher.troubles import HOSTS_GROUP, HTTP, HTTP_GROUP
from nutch2py.joblog.entry import JobEntry
from nutch2py.jobs.tally import Tally
from nutch2py.mapreduce.driver import JobResult
from nutch2py.plugin_guard import FAILURES
from nutch2py.url.url_filters import LINKS_GROUP, MALFORMED, NOFOLLOW, REDIRECT, REFRESH

GATE = "http.filter.ipaddress.exclude"
FETCH, GENERATE, INJECT, PARSE, INDEX, UPDATE, TABLE = (
    "FetcherStatus", "generator", "injector", "ParserStatus", "IndexerStatus", "updatedb", "table"
)  # fmt: skip
_SHOWN = 3  # hosts
_RECENT = 86_400_000  # ms before the newest job in which others are of the same crawl, as people see it


class Reason(NamedTuple):
    """Why URLs were left out: what for people, and what decides it or is to be done ("": nothing that is ours to do).

    ``ours``: it is likely to be on this side that something is to be mended.
    """

    what: str
    repair: str = ""
    ours: bool = False


class LeftOut(NamedTuple):
    """A ``number`` of URLs (links, pages), left out for a reason; ``hosts``: those with most of them first."""

    number: int
    reason: Reason
    hosts: tuple[tuple[str, int], ...] = ()

    @property
    def where(self) -> str:
        """The hosts as text, "" for none."""
        more = ", …" if len(self.hosts) > _SHOWN else ""
        return ", ".join(f"{host} ({count:,})" for host, count in self.hosts[:_SHOWN]) + more

    def __str__(self) -> str:
        """Return it in a line, without the number."""
        text = self.reason.what + (f": {self.where}" if self.hosts else "")
        return text + (f" ({self.reason.repair})" if self.reason.repair else "")


_LATER = "; they are tried again later"
_ROUND = "; a later round takes them"
_NO_KEY = Reason("have a row key that is none", "nutch2py checktable", ours=True)
STATUSES = {
    "ROBOTS_DENIED": Reason(
        "the site's robots.txt denies them to us",
        "it is read for the names in http.agent.name and http.robots.agents; of a host of your own, "
        "http.robot.rules.allowlist passes over it",
    ),
    "ROBOTS_DENIED_MAXCRAWLDELAY": Reason(
        "the site's robots.txt asks for longer waits than are accepted", "fetcher.max.crawl.delay, in seconds"
    ),
    "NOTFOUND": Reason("are not there (404)"),
    "GONE": Reason("are gone (410, 400)"),
    "ACCESS_DENIED": Reason("ask for a login (401)", "http.auth.file names logins"),
    "FAILED": Reason("met an error of this program", "the log of fetch names it", ours=True),
    "robots_defer_visits_dropped": Reason(
        f"wait as the robots.txt of their site was answered with an error (5xx){_ROUND}",
        "http.robots.503.defer.visits, and .delay and .retries behind it",
    ),
    "AboveExceptionThresholdInQueue": Reason(
        f"wait as their server failed too often{_ROUND}", "fetcher.max.exceptions.per.queue"
    ),
    "AboveMaxRetryAfter": Reason(f"wait as their server asked for a longer pause{_ROUND}", "fetcher.max.retry.after"),
    "AboveMaxPagesInQueue": Reason(
        f"wait as their host had enough of the round{_ROUND}", "fetcher.max.pages.per.queue"
    ),
    "AboveMaxTroubleInQueue": Reason(
        f"wait as their server was slow or failed for too long{_ROUND}", "fetcher.max.trouble.per.queue"
    ),
    "HitByTimeLimit-QueueFeeder": Reason(f"wait as the time of a fetch was over{_ROUND}", "fetcher.timelimit.mins"),
    "HitByTimeLimit-Queues": Reason(
        f"wait as the time of a fetch was over for their host{_ROUND}", "fetcher.timelimit.mins"
    ),
    "hitByThrougputThreshold": Reason(
        f"wait as a fetch had become too slow{_ROUND}", "fetcher.throughput.threshold.pages"
    ),
    "malformed_key": _NO_KEY,
}
"""By counters of fetch: of protocol statuses, and of what it leaves for later."""
FAILURES_OF_FETCH = {
    FailureKind.GATE: Reason(
        f"are at addresses that are refused{_LATER}", f"to allow private ones: -D {GATE}=", ours=True
    ),
    FailureKind.DNS: Reason(
        f"have a host whose name nobody knows{_LATER}", "http.dns.servers chooses who is asked", ours=True
    ),
    FailureKind.REFUSED: Reason(f"are of servers that refuse the connection{_LATER}"),
    FailureKind.CONNECT: Reason(f"are of servers that cannot be reached{_LATER}", "http.proxy.host, if one is needed"),
    FailureKind.SOCKET: Reason(
        f"found no socket left on this machine{_LATER}", "ulimit -n, fewer fetcher.threads.fetch", ours=True
    ),
    FailureKind.CLOSED: Reason(f"are of servers that closed the connection{_LATER}"),
    FailureKind.TLS: Reason(
        f"have a certificate that is not to be trusted{_LATER}", "-D http.tls.certificates.check=false"
    ),
    FailureKind.TIMEOUT: Reason(f"were not answered in time{_LATER}", "http.timeout, in milliseconds"),
    FailureKind.PROTOCOL: Reason(f"were answered with what is no HTTP{_LATER}"),
    FailureKind.LIMIT: Reason(f"are beyond a limit, which readdb -url URL names{_LATER}", "http.time.limit and others"),
    FailureKind.URL: Reason(f"are malformed{_LATER}"),
    FailureKind.SCHEME: Reason(f"have a protocol that no plug-in speaks{_LATER}", "plugin.includes.add", ours=True),
    FailureKind.ROBOTS: Reason(
        f"wait until the robots.txt of their site can be read{_LATER}", "http.robots.503.defer.visits"
    ),
    FailureKind.BROWSER: Reason(f"could not be rendered{_LATER}", "readdb -url URL shows why"),
    FailureKind.OTHER: Reason(f"failed{_LATER}", "readdb -url URL shows how"),
}
_HTTP = f"were answered with an error{_LATER}"
_HTTP_REPAIRS = {
    "403": "the server refuses us: by http.agent.name, or by our address",
    "406": "http.accept and http.accept.language",
    "407": "http.proxy.username and http.proxy.password",
    "429": "we ask too often: fetcher.server.delay",
    "503": "it is down, or we ask too often: fetcher.server.delay",
}
_OTHERS = {
    GENERATE: {
        "filtered": Reason("that are known are refused by the URL filters now", "nutch2py filterchecker", ours=True),
        "too_distant": Reason(
            "are more links from where it began than are to be followed", "generate.max.distance; of crawl, -depth"
        ),
        "score_too_low": Reason("have too low a score", "generate.min.score"),
        "over_max_count": Reason(f"wait as their host had enough of a batch{_ROUND}", "generate.max.count"),
        "malformed_key": _NO_KEY,
    },
    INJECT: {
        "urls_filtered": Reason(
            "of the seeds are refused by a normalizer or a URL filter", "nutch2py filterchecker", ours=True
        ),
        "faults": Reason("lines of seeds have a fault", "the log of inject names them", ours=True),
    },
    PARSE: {
        "failed": Reason("came, and no parser can read them", "readdb -url URL shows why"),
        "truncated": Reason(
            "came cut off, and were not parsed", "http.content.limit; parser.skip.truncated parses them"
        ),
        "malformed_key": _NO_KEY,
    },
    INDEX: {
        "refused": Reason("documents were refused by the index", "the log of index names them", ours=True),
        "failed": Reason("pages met an error of a plug-in on their way to the index", "plugin.includes", ours=True),
        "skipped": Reason(
            "pages came and are no documents: noindex, redirects, duplicates, indexing filters",
            "nutch2py indexchecker URL",
        ),
    },
    UPDATE: {
        "rows_not_allowed": Reason("pages that links lead to were not added", "db.update.additions.allowed", ours=True),
        "malformed_links": Reason("links are no URLs"),
        "malformed_keys": _NO_KEY,
        "pages_failed": Reason("pages met an error of a plug-in in updatedb", "plugin.includes", ours=True),
    },
    TABLE: {
        "rows_refused": Reason("rows were too large for the store", "hbase.client.keyvalue.maxsize", ours=True),
        "rows_unreadable": Reason("rows have a cell that cannot be read", "nutch2py checktable", ours=True),
    },
}
_NOWHERE = Reason(
    "redirects lead to themselves or where no link is followed",
    "the URL filters, db.ignore.external.links; of crawl, -stay",
)
_LINKS = {
    MALFORMED: Reason("links are no URLs"),
    NOFOLLOW: Reason("links are nofollow, by their own words or their page's, and were not followed"),
    REDIRECT: _NOWHERE,
    REFRESH: _NOWHERE._replace(what=f"{_NOWHERE.what}, by a meta element"),
    "db.ignore.external.links": Reason(
        "links lead to other sites, and were not followed",
        "db.ignore.external.links and its mode; of crawl, -stay chooses",
    ),
    "db.ignore.internal.links": Reason(
        "links stay within their site, and were not followed", "db.ignore.internal.links"
    ),
    "db.max.outlinks.per.page": Reason(
        "links stand behind the first of their page, and were not followed", "db.max.outlinks.per.page"
    ),
    "sitemap.strict.parsing": Reason("URLs of sitemaps lie outside their folder", "sitemap.strict.parsing"),
}


def recent(entries: Sequence[JobEntry]) -> Tally:
    """Return what the jobs of the log counted that ended within a day before the newest; ``entries``: that first.

    Of generate and inject, which look at the same rows and seeds again and again, only the last one counts.
    """
    tally, told = Tally(), set[str]()
    for entry in entries:
        if entry.begun < entries[0].begun - _RECENT:
            break
        counters = {group: dict(names) for group, names in entry.counters.items()}
        if entry.job == "generate" and entry.job not in told:
            tally.left = counters.get(GENERATE, {})
        if entry.job not in ("generate", "inject") or entry.job not in told:
            tally.add(JobResult(counters))
        told.add(entry.job)
    return tally


def left_out(tally: Tally, conf: Configuration) -> Iterator[LeftOut]:
    """Yield what the jobs of a tally left out, by where it happened: fetch, parse, links, generate, index, table.

    What is counted anew by each generate and inject (``tally.left``) is that of the last one.
    """
    hosts = _hosts(tally.sums.group(HOSTS_GROUP))
    moved = tally.moved - tally.sums.count(LINKS_GROUP, REDIRECT)
    yield from _some(max(moved, 0), Reason("lead to other URLs, which are fetched instead"))
    for name, reason in STATUSES.items():
        yield from _some(tally.fetched(name), reason, hosts.get(name, ()))
    for kind, count in sorted(tally.failures().items(), key=lambda each: -each[1]):
        if kind in FAILURES_OF_FETCH:
            yield LeftOut(count, FAILURES_OF_FETCH[FailureKind(kind)], hosts.get(kind, ()))
        else:
            yield from _answered(count, tally, hosts)
    for name, count in sorted(tally.sums.group(LINKS_GROUP).items(), key=lambda each: -each[1]):
        yield from _some(count, _of_link(name, conf))
    for group, reasons in _OTHERS.items():
        counts = tally.left if group == GENERATE else tally.sums.group(group)
        for name, reason in reasons.items():
            yield from _some(counts.get(name, 0), reason)
    for plugin, count in sorted(tally.sums.group(FAILURES).items()):
        met = f"pages met an error of the plug-in {plugin}"
        yield LeftOut(count, Reason(met, "mend it, or take it out of plugin.includes; the log names them", ours=True))


def _some(count: int, reason: Reason, hosts: tuple[tuple[str, int], ...] = ()) -> Iterator[LeftOut]:
    if count:
        yield LeftOut(count, reason, hosts)


def _answered(count: int, tally: Tally, hosts: Mapping[str, tuple[tuple[str, int], ...]]) -> Iterator[LeftOut]:
    """Yield the answers that were errors, by their status; those of a log that tells none together."""
    for status, amount in sorted(tally.sums.group(HTTP_GROUP).items(), key=lambda each: -each[1]):
        repair = _HTTP_REPAIRS.get(status, "readdb -url URL shows the page's")
        reason = Reason(f"{_HTTP.replace('error', f'error ({status})', 1)}", repair, status in ("403", "407"))
        yield LeftOut(amount, reason, hosts.get(f"{HTTP}{status}", ()))
        count -= amount
    yield from _some(max(count, 0), Reason(_HTTP, "readdb -url URL shows which"))


def _of_link(name: str, conf: Configuration) -> Reason:
    """Return why links were left out; ``name``: a property, or the id of a URL filter."""
    if name in _LINKS:
        return _LINKS[name]
    if not name.startswith("urlfilter-"):
        known = name.count(".") > 1
        return Reason(
            "links are too long" if known else f"links are refused by the URL filter {name}", name if known else ""
        )
    point = name.replace("-", ".", 1)
    file = conf.get_trimmed(f"{point}.file")
    path = conf.resource(file) if file else None
    decides = f"property {point}.rules" if conf.get(f"{point}.rules") else str(path) if path else "plugin.includes"
    return Reason(f"links are refused by the URL filter {name}", f"{decides}; nutch2py filterchecker tells of a URL")


def _hosts(counts: Mapping[str, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return hosts with their numbers by reason, the greatest first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, count in sorted(counts.items(), key=lambda each: -each[1]):
        reason, _, host = name.partition(" ")
        found.setdefault(reason, []).append((host, count))
    return {reason: tuple(hosts) for reason, hosts in found.items()}
