"""Which rows of the table are pages of the link graph, and which of their links count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import decode_text
from nutch2py.records.record import Field
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.scoring.pagerank_model import PAGERANK_MODELS, get_choice
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.keys import reverse_url, reversed_host_of_key, unreverse_host
from nutch2py.url.url_parts import domain_of_host

LINK_GRAPH_FIELDS: frozenset[Field[Any]] = frozenset(
    # fetch_interval too, for every row has it, by which it is found
    {WebPage.status, WebPage.outlinks, WebPage.page_rank, WebPage.fetch_interval}
)
"""What is read of a row to place it in the graph; never content, text or inlinks."""

_FETCHED_STATUSES = frozenset(
    {CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED, CrawlStatus.REDIR_PERM, CrawlStatus.REDIR_TEMP, CrawlStatus.RETRY}
)


NAVIGATION_SHARE = 0.3
"""Of the pages of a site that have links: what more of them link to is its navigation."""


class PageLinks(NamedTuple):
    """The row keys that a page links to, each once: within its site, and elsewhere."""

    internal: list[str]
    external: list[str]


class GraphLinkRules:
    """Decides about pages and links.

    A page of the graph is every row but those that are gone; with ``pagerank.unfetched`` false, only those that were
    fetched. A redirect is a page whose one link is its target, so it hands on what it gets. Several links to one page
    count as one, links to itself and to rows that are not pages of the graph do not count at all, not even among C.

    ``pagerank.site``: pages are of one site when they share the host, or the registered domain.
    ``pagerank.ignore.internal``: leave out links within a host or a domain. ``pagerank.limit``: of the links to one
    host or domain the first counts, in the order of row keys. The model ``linkrank`` takes ``link.ignore.*`` instead.
    ``navigation_share``: ``pagerank.navigation.share``, 1 for the models that count all links.
    """

    def __init__(self, conf: Configuration) -> None:
        self.includes_unfetched = conf.get_bool("pagerank.unfetched", True)
        self.site_of = _SITE_FUNCTIONS[get_choice(conf, "pagerank.site", ("host", "domain"))]
        model = get_choice(conf, "pagerank.model", PAGERANK_MODELS)
        self.navigation_share = (
            conf.get_float("pagerank.navigation.share", NAVIGATION_SHARE) if model == "site" else 1.0
        )
        if model == "linkrank":
            domain = conf.get_bool("link.ignore.internal.domain", True)
            host = conf.get_bool("link.ignore.internal.host", True)
            self.ignored_site_of = _SITE_FUNCTIONS["domain" if domain else "host" if host else "none"]
            self.limited_site_of = _SITE_FUNCTIONS[
                "domain" if conf.get_bool("link.ignore.limit.domain", True) else "none"
            ]
        else:
            words = ("none", "host", "domain")
            self.ignored_site_of = _SITE_FUNCTIONS[get_choice(conf, "pagerank.ignore.internal", words)]
            self.limited_site_of = _SITE_FUNCTIONS[get_choice(conf, "pagerank.limit", words)]

    def is_page(self, page: WebPage) -> bool:
        """Tell whether a row is a page of the graph."""
        status = page.status
        return status != CrawlStatus.GONE and (self.includes_unfetched or status in _FETCHED_STATUSES)

    def select_links(self, key: str, page: WebPage) -> PageLinks:
        """Return what a page links to; whether these rows are pages is not known yet."""
        targets: set[str] = set()
        for url in map(decode_text, page.outlinks.raw_cells()):
            try:
                targets.add(reverse_url(url))
            except ValueError:
                continue
        targets.discard(key)
        if not targets:
            return PageLinks([], [])
        host = reversed_host_of_key(key)
        chosen = self._apply_options(host, targets)
        prefix = f"{host}:"  # of all keys of the host
        internal = [target for target in chosen if target.startswith(prefix)]
        external = [target for target in chosen if not target.startswith(prefix)]
        if self.site_of is _domain_site and external:
            here = _domain_site(host)
            sites = [_domain_site(reversed_host_of_key(target)) for target in external]
            internal += [target for target, site in zip(external, sites, strict=True) if site == here]
            external = [target for target, site in zip(external, sites, strict=True) if site != here]
        return PageLinks(internal, external)

    def _apply_options(self, host: str, targets: set[str]) -> list[str] | set[str]:
        """Leave out what the options leave out."""
        if self.ignored_site_of is not None:
            here = self.ignored_site_of(host)
            targets = {target for target in targets if self.ignored_site_of(reversed_host_of_key(target)) != here}
        if self.limited_site_of is None:
            return targets
        first: dict[str, str] = {}
        for target in sorted(targets):
            first.setdefault(self.limited_site_of(reversed_host_of_key(target)), target)
        return [*first.values()]


def _host_site(reversed_host: str) -> str:
    return reversed_host


@bounded_cache(65_536)
def _domain_site(reversed_host: str) -> str:
    return domain_of_host(unreverse_host(reversed_host))


_SITE_FUNCTIONS: dict[str, Callable[[str], str] | None] = {"none": None, "host": _host_site, "domain": _domain_site}
