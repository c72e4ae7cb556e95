"""Which rows of the table are pages of the link graph, and which of their links count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nutch2py.cells import decode_text
from nutch2py.conf import Configuration
from nutch2py.record import Field
from nutch2py.scoring.rank_model import MODELS, choice
from nutch2py.short_cache import short_cache
from nutch2py.url.keys import host_of_key, reverse_url, unreverse_host
from nutch2py.url.parts import domain_of_host
from nutch2py.webpage import CrawlStatus, WebPage

FIELDS: frozenset[Field[Any]] = frozenset(
    # fetch_interval too, for every row has it, by which it is found
    {WebPage.status, WebPage.outlinks, WebPage.page_rank, WebPage.fetch_interval}
)
"""What is read of a row to place it in the graph; never content, text or inlinks."""

_FETCHED = frozenset(
    {CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED, CrawlStatus.REDIR_PERM, CrawlStatus.REDIR_TEMP, CrawlStatus.RETRY}
)


NAVIGATION_SHARE = 0.3
"""Of the pages of a site that have links: what more of them link to is its navigation."""


class PageLinks(NamedTuple):
    """The row keys that a page links to, each once: within its site, and elsewhere."""

    internal: list[str]
    external: list[str]


class LinkRules:
    """Decides about pages and links.

    A page of the graph is every row but those that are gone; with ``pagerank.unfetched`` false, only those that were
    fetched. A redirect is a page whose one link is its target, so it hands on what it gets. Several links to one page
    count as one, links to itself and to rows that are not pages of the graph do not count at all, not even among C.

    ``pagerank.site``: pages are of one site when they share the host, or the registered domain.
    ``pagerank.ignore.internal``: leave out links within a host or a domain. ``pagerank.limit``: of the links to one
    host or domain the first counts, in the order of row keys. The model ``linkrank`` takes ``link.ignore.*`` instead.
    ``navigation``: ``pagerank.navigation.share``, 1 for the models that count all links.
    """

    def __init__(self, conf: Configuration) -> None:
        self.unfetched = conf.get_bool("pagerank.unfetched", True)
        self.site = _SITES[choice(conf, "pagerank.site", ("host", "domain"))]
        model = choice(conf, "pagerank.model", MODELS)
        self.navigation = conf.get_float("pagerank.navigation.share", NAVIGATION_SHARE) if model == "site" else 1.0
        if model == "linkrank":
            domain = conf.get_bool("link.ignore.internal.domain", True)
            host = conf.get_bool("link.ignore.internal.host", True)
            self.ignored = _SITES["domain" if domain else "host" if host else "none"]
            self.limited = _SITES["domain" if conf.get_bool("link.ignore.limit.domain", True) else "none"]
        else:
            words = ("none", "host", "domain")
            self.ignored = _SITES[choice(conf, "pagerank.ignore.internal", words)]
            self.limited = _SITES[choice(conf, "pagerank.limit", words)]

    def is_page(self, page: WebPage) -> bool:
        """Tell whether a row is a page of the graph."""
        status = page.status
        return status != CrawlStatus.GONE and (self.unfetched or status in _FETCHED)

    def links(self, key: str, page: WebPage) -> PageLinks:
        """Return what a page links to; whether these rows are pages is not known yet."""
        targets: set[str] = set()
        for url in map(decode_text, page.outlinks.raw()):
            try:
                targets.add(reverse_url(url))
            except ValueError:
                continue
        targets.discard(key)
        if not targets:
            return PageLinks([], [])
        host = host_of_key(key)
        chosen = self._chosen(host, targets)
        prefix = f"{host}:"  # of all keys of the host
        internal = [target for target in chosen if target.startswith(prefix)]
        external = [target for target in chosen if not target.startswith(prefix)]
        if self.site is _domain and external:
            here = _domain(host)
            sites = [_domain(host_of_key(target)) for target in external]
            internal += [target for target, site in zip(external, sites, strict=True) if site == here]
            external = [target for target, site in zip(external, sites, strict=True) if site != here]
        return PageLinks(internal, external)

    def _chosen(self, host: str, targets: set[str]) -> list[str] | set[str]:
        """Leave out what the options leave out."""
        if self.ignored is not None:
            here = self.ignored(host)
            targets = {target for target in targets if self.ignored(host_of_key(target)) != here}
        if self.limited is None:
            return targets
        first: dict[str, str] = {}
        for target in sorted(targets):
            first.setdefault(self.limited(host_of_key(target)), target)
        return [*first.values()]


def _host(reversed_host: str) -> str:
    return reversed_host


@short_cache(65_536)
def _domain(reversed_host: str) -> str:
    return domain_of_host(unreverse_host(reversed_host))


_SITES: dict[str, Callable[[str], str] | None] = {"none": None, "host": _host, "domain": _domain}
