"""index-links (Nutch 1): where a page links to, and from where it is linked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nutch2py.conf import Configuration
from nutch2py.contracts import IndexingFilter
from nutch2py.document import NutchDocument
from nutch2py.url.parts import host_of
from nutch2py.webpage import WebPage


class LinksIndexingFilter(IndexingFilter):
    """Adds the URLs of ``outlinks`` and ``inlinks``.

    ``index.links.outlinks.host.ignore``, ``index.links.inlinks.host.ignore``: leave out links within the host.
    ``index.links.hosts.only``: hosts instead of URLs, each once.
    """

    java_class = "org.apache.nutch.indexer.links.LinksIndexingFilter"
    fields = frozenset({WebPage.outlinks, WebPage.inlinks})

    def __init__(self, conf: Configuration) -> None:
        self.foreign_outlinks = conf.get_bool("index.links.outlinks.host.ignore", False)
        self.foreign_inlinks = conf.get_bool("index.links.inlinks.host.ignore", False)
        self.hosts_only = conf.get_bool("index.links.hosts.only", False)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add both fields."""
        here = host_of(url)
        for value in self._chosen(page.outlinks, here if self.foreign_outlinks else None):
            document.add("outlinks", value)
        for value in self._chosen(page.inlinks, here if self.foreign_inlinks else None):
            document.add("inlinks", value)
        return document

    def _chosen(self, links: Iterable[str], left_out: str | None) -> Iterator[str]:
        hosts: set[str] = set()
        for link in links:
            try:
                host = host_of(link)
            except ValueError:
                continue
            if host == left_out:
                continue
            if not self.hosts_only:
                yield link
            elif host not in hosts:
                hosts.add(host)
                yield host
