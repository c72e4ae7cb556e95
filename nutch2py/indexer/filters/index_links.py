"""index-links (Nutch 1): outlinks and inlinks of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage
from nutch2py.url.url_parts import host_of


class LinksIndexingFilter(IndexingFilter):
    """Adds the URLs of ``outlinks`` and ``inlinks``.

    ``index.links.outlinks.host.ignore``, ``index.links.inlinks.host.ignore``: skip links within the host.
    ``index.links.hosts.only``: hosts instead of URLs, each once.
    """

    java_class = "org.apache.nutch.indexer.links.LinksIndexingFilter"
    fields = frozenset({WebPage.outlinks, WebPage.inlinks})

    def __init__(self, conf: Configuration) -> None:
        self.external_outlinks_only = conf.get_bool("index.links.outlinks.host.ignore", False)
        self.external_inlinks_only = conf.get_bool("index.links.inlinks.host.ignore", False)
        self.hosts_only = conf.get_bool("index.links.hosts.only", False)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add both fields."""
        own_host = host_of(url)
        for value in self._select_links(page.outlinks, own_host if self.external_outlinks_only else None):
            document.add("outlinks", value)
        for value in self._select_links(page.inlinks, own_host if self.external_inlinks_only else None):
            document.add("inlinks", value)
        return document

    def _select_links(self, links: Iterable[str], skipped_host: str | None) -> Iterator[str]:
        hosts: set[str] = set()
        for link in links:
            try:
                host = host_of(link)
            except ValueError:
                continue
            if host == skipped_host:
                continue
            if not self.hosts_only:
                yield link
            elif host not in hosts:
                hosts.add(host)
                yield host
