"""Selects the pages and links of the link graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import decode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.scoring.pagerank_model import PAGERANK_MODELS, get_choice
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.keys import reverse_url, reversed_host_of_key, unreverse_host
from nutch2py.url.url_parts import DomainRules

LINK_GRAPH_FIELDS: frozenset[RecordField] = frozenset(
    # every row has fetch_interval, so no row is missed
    {WebPage.status, WebPage.outlinks, WebPage.page_rank, WebPage.fetch_interval}
)
"""Fields that are read to build the graph; never content, text or inlinks."""

_FETCHED_STATUSES = frozenset(
    {CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED, CrawlStatus.REDIR_PERM, CrawlStatus.REDIR_TEMP, CrawlStatus.RETRY}
)


NAVIGATION_SHARE = 0.3
"""Default part of a site's pages with links; a page that more of them link to is navigation."""


class PageLinks(NamedTuple):
    """Distinct row keys that a page links to: within its site, and on other sites."""

    internal: list[str]
    external: list[str]


class GraphLinkRules:
    """Rules that select pages and links.

    All rows except gone ones are pages of the graph; with ``pagerank.unfetched`` false only fetched rows. A redirect
    is a page with its target as only link, so it passes its rank on. Several links to one page count as one. Links to
    the page itself and to rows outside the graph do not count, not even in C.

    Properties: ``pagerank.site`` defines a site as a host or registered domain. ``pagerank.ignore.internal`` skips
    links within a host or domain. With ``pagerank.limit`` only the first link to a host or domain counts, in the order
    of row keys. The model ``linkrank`` uses ``link.ignore.*`` instead.

    Attributes:
        navigation_share: ``pagerank.navigation.share``, 1 for the models that count all links.
    """

    def __init__(self, conf: Configuration) -> None:
        self.includes_unfetched = conf.get_bool("pagerank.unfetched", True)
        domain_of_host = DomainRules.from_conf(conf).domain_of_host

        @bounded_cache(65_536)
        def domain_site(reversed_host: str) -> str:
            return domain_of_host(unreverse_host(reversed_host))

        self._domain_site = domain_site
        site_functions: dict[str, Callable[[str], str] | None] = {
            "none": None, "host": _host_site, "domain": self._domain_site,
        }  # fmt: skip
        self.site_of = site_functions[get_choice(conf, "pagerank.site", ("host", "domain"))]
        model = get_choice(conf, "pagerank.model", PAGERANK_MODELS)
        self.navigation_share = (
            conf.get_float("pagerank.navigation.share", NAVIGATION_SHARE) if model == "site" else 1.0
        )
        if model == "linkrank":
            domain = conf.get_bool("link.ignore.internal.domain", True)
            host = conf.get_bool("link.ignore.internal.host", True)
            self.ignored_site_of = site_functions["domain" if domain else "host" if host else "none"]
            self.limited_site_of = site_functions[
                "domain" if conf.get_bool("link.ignore.limit.domain", True) else "none"
            ]
        else:
            choices = ("none", "host", "domain")
            self.ignored_site_of = site_functions[get_choice(conf, "pagerank.ignore.internal", choices)]
            self.limited_site_of = site_functions[get_choice(conf, "pagerank.limit", choices)]

    def is_page(self, page: WebPage) -> bool:
        """Return whether a row is a page of the graph."""
        status = page.status
        return status != CrawlStatus.GONE and (self.includes_unfetched or status in _FETCHED_STATUSES)

    def select_links(self, key: str, page: WebPage) -> PageLinks:
        """Return the link targets of a page; they may not be pages of the graph."""
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
        selected = self._apply_options(host, targets)
        prefix = f"{host}:"  # of all row keys of the host
        internal = [target for target in selected if target.startswith(prefix)]
        external = [target for target in selected if not target.startswith(prefix)]
        if self.site_of is self._domain_site and external:
            own_site = self._domain_site(host)
            sites = [self._domain_site(reversed_host_of_key(target)) for target in external]
            internal += [target for target, site in zip(external, sites, strict=True) if site == own_site]
            external = [target for target, site in zip(external, sites, strict=True) if site != own_site]
        return PageLinks(internal, external)

    def _apply_options(self, host: str, targets: set[str]) -> list[str] | set[str]:
        """Skip the links that the properties exclude."""
        if self.ignored_site_of is not None:
            own_site = self.ignored_site_of(host)
            targets = {target for target in targets if self.ignored_site_of(reversed_host_of_key(target)) != own_site}
        if self.limited_site_of is None:
            return targets
        first: dict[str, str] = {}
        for target in sorted(targets):
            first.setdefault(self.limited_site_of(reversed_host_of_key(target)), target)
        return [*first.values()]


def _host_site(reversed_host: str) -> str:
    return reversed_host
