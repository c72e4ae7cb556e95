"""Which links of a page are kept: normalizers, filters, and the limits of ``nutch-default.xml`` (Nutch's ParseUtil).

``db.ignore.internal.links`` is not read: Nutch 2 ships it as true and reads it nowhere, so that obeying it would take
every link within a site from those who bring their configuration along.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nutch2py.conf import Configuration
from nutch2py.plugins import Outlink
from nutch2py.url.filters import URLFilters
from nutch2py.url.normalizers import URLNormalizers
from nutch2py.url.parts import host_of

_REMEMBERED = 16_384  # pages of one site link to the same targets over and over


class LinkRules:
    """The rules of one configuration. Remembers what became of the last targets."""

    def __init__(self, conf: Configuration) -> None:
        self._filters = URLFilters(conf)
        self._outlink = URLNormalizers(conf, "outlink")
        self._fetcher = URLNormalizers(conf, "fetcher")
        most = conf.get_int("db.max.outlinks.per.page", 100)
        self._most = most if most >= 0 else None
        self._max_length = conf.get_int("parser.html.outlinks.max.target.length", 3000)
        self._ignore_external = conf.get_bool("db.ignore.external.links")
        self.accept = lru_cache(maxsize=_REMEMBERED)(self._accept)

    def _accept(self, url: str) -> str | None:
        """Return the URL normalized (scope outlink), None when it is no URL or a filter rejects it."""
        try:
            target = self._outlink.normalize(url)
            return None if target is None else self._filters.filter(target)
        except ValueError:
            return None

    def accept_redirect(self, url: str) -> str | None:
        """Return the target of a redirect normalized (scope fetcher), None when it is no URL or rejected."""
        try:
            target = self._fetcher.normalize(url)
            return None if target is None else self._filters.filter(target)
        except ValueError:
            return None

    def kept(self, url: str, outlinks: Sequence[Outlink]) -> dict[str, str]:
        """Return target -> anchor of the outlinks of page ``url`` that are kept: the first anchor of each target.

        ``db.max.outlinks.per.page`` counts the links of the page before any is left out, as in Nutch.
        """
        links: Sequence[Outlink] = [link for link in outlinks[: self._most] if len(link.url) <= self._max_length]
        if self._ignore_external:
            host = _host(url)
            links = [link for link in links if host is not None and _host(link.url) == host]
        kept: dict[str, str] = {}
        for link in links:
            target = self.accept(link.url)
            if target is not None and target not in kept:
                kept[target] = link.anchor
        return kept


def _host(url: str) -> str | None:
    try:
        return host_of(url)
    except ValueError:
        return None
