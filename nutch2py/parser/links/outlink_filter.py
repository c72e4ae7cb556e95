"""Selects the outlinks to keep: normalizers, filters and the limits of ``nutch-default.xml`` (Nutch's ParseUtil).

Nutch 2 ships ``db.ignore.internal.links`` as true but never reads it; to obey it would drop all internal links of
migrated configurations. So it is obeyed unless a configuration folder's own ``nutch-default.xml`` sets it to true.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink
from nutch2py.support.bounded_cache import BoundedDict, bounded_cache
from nutch2py.url.filters.regex_url_filter import RegexURLFilter
from nutch2py.url.filters.url_filters import MALFORMED, URLFilters
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_parts import DomainRules, host_of

IGNORE_EXTERNAL_LINKS, IGNORE_INTERNAL_LINKS = "db.ignore.external.links", "db.ignore.internal.links"
_MAX_OUTLINKS = "db.max.outlinks.per.page"
_LENGTH_LIMITS = (("parser.html.outlinks.max.target.length", 3000), ("db.max.outlink.length", 4096))
_INTERNAL_LINKS_IGNORED = re.compile(r"<name>\s*db\.ignore\.internal\.links\s*</name>\s*<value>\s*true\s*</value>")
# number and maximum length of cached URLs: pages of one site link to the same targets
CACHED_URLS, _MAX_CACHED_URL_CHARS = 16_384, 1024
"""URLs whose filter result is cached, and the longest of them."""


class OutlinkFilter:
    """The rules of one configuration, with a cache of recent results."""

    def __init__(self, conf: Configuration) -> None:
        self._domain_of_host = DomainRules.from_conf(conf).domain_of_host
        self._url_filters = URLFilters(conf)
        self._outlink_normalizers = URLNormalizers(conf, "outlink")
        self._fetcher_normalizers = URLNormalizers(conf, "fetcher")
        most = conf.get_int(_MAX_OUTLINKS, 100)
        self._max_outlinks = most if most >= 0 else None
        lengths = [(conf.get_int(name, default), name) for name, default in _LENGTH_LIMITS]
        self._max_length, self._length_property = min(
            [each for each in lengths if each[0] >= 0], default=(sys.maxsize, "")
        )
        anchor = conf.get_int("db.max.anchor.length", -1)
        self._max_anchor_length = anchor if anchor >= 0 else None
        self._use_filters = conf.get_bool("parse.filter.urls", True)
        self._use_normalizers = conf.get_bool("parse.normalize.urls", True)
        self._ignore_external = conf.get_bool(IGNORE_EXTERNAL_LINKS)
        self._ignore_internal = conf.get_bool(IGNORE_INTERNAL_LINKS) and not _is_nutch_2_default(conf)
        self._by_domain = conf.get_trimmed("db.ignore.external.links.mode", "byHost").lower() == "bydomain"
        self._exemptions = _load_exemptions(conf) if self._ignore_external else None
        self.accept_cache = BoundedDict(self._accept, CACHED_URLS, _MAX_CACHED_URL_CHARS)
        self.rejection_reason = bounded_cache(CACHED_URLS, _MAX_CACHED_URL_CHARS)(self._find_rejection)

    def accept(self, url: str) -> str | None:
        """Return the normalized URL (scope outlink), None when it is invalid or rejected by a filter."""
        return self.accept_cache[url]

    def _accept(self, url: str) -> str | None:
        try:
            target = self._outlink_normalizers.normalize(url) if self._use_normalizers else url
            return None if target is None else self._url_filters.filter_link(target) if self._use_filters else target
        except ValueError:
            return None

    def _find_rejection(self, url: str) -> str:
        """Return the reason why :meth:`accept` returns None: the id of a filter, a property, or MALFORMED."""
        try:
            target = self._outlink_normalizers.normalize(url) if self._use_normalizers else url
            return MALFORMED if target is None else self._url_filters.rejecting_filter(target)
        except ValueError:
            return MALFORMED

    def accept_redirect(self, url: str) -> str | None:
        """Return the normalized target of a redirect (scope fetcher), None when it is invalid or rejected."""
        try:
            target = self._fetcher_normalizers.normalize(url)
            return None if target is None else self._url_filters.filter_link(target)
        except ValueError:
            return None

    def filter_outlinks(
        self, url: str, outlinks: Sequence[Outlink], skipped: Counter[str] | None = None
    ) -> dict[str, str]:
        """Return target -> anchor of the accepted outlinks of page ``url``: the first anchor of each target.

        ``db.max.outlinks.per.page`` counts the links of the page before any filter, as in Nutch. ``skipped`` counts the
        rejected links by the property, or by the id of the filter, that rejects them.
        """
        if skipped is None:
            skipped = Counter()
        first = outlinks[: self._max_outlinks]
        most = self._max_length
        links: Sequence[Outlink] = [link for link in first if len(link[0]) <= most]
        skipped[_MAX_OUTLINKS] += len(outlinks) - len(first)
        skipped[self._length_property] += len(first) - len(links)
        if self._ignore_external or self._ignore_internal:
            near = [link for link in links if self._is_followed(url, link.url)]
            skipped[IGNORE_EXTERNAL_LINKS if self._ignore_external else IGNORE_INTERNAL_LINKS] += len(links) - len(near)
            links = near
        kept: dict[str, str] = {}
        longest = self._max_anchor_length
        for written, anchor in links:
            target = self.accept(written)
            if target is None:
                skipped[self.rejection_reason(written)] += 1
            elif target not in kept:
                kept[target] = anchor if longest is None else anchor[:longest]
        return kept

    def _is_followed(self, source: str, target: str) -> bool:
        """Return whether neither ``db.ignore.external.links`` nor ``db.ignore.internal.links`` drops a link."""
        place = self._host_or_domain(source)
        internal = place is not None and self._host_or_domain(target) == place
        if internal:
            return not self._ignore_internal
        return not self._ignore_external or (
            self._exemptions is not None and self._exemptions.filter(target) is not None
        )

    def _host_or_domain(self, url: str) -> str | None:
        """Return the host or domain of a URL by ``db.ignore.external.links.mode``; None when it has none."""
        try:
            host = host_of(url)
        except ValueError:
            return None
        return self._domain_of_host(host) if host and self._by_domain else host


def _is_nutch_2_default(conf: Configuration) -> bool:
    """Return whether the property may come from a Nutch 2 ``nutch-default.xml``; Nutch 2 never reads it."""
    return any(_INTERNAL_LINKS_IGNORED.search(_read_text(folder / "nutch-default.xml")) for folder in conf.conf_dirs)


def _read_text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _load_exemptions(conf: Configuration) -> RegexURLFilter | None:
    """Return the rules that exempt links from ``db.ignore.external.links``, None without the file."""
    name = conf.get_trimmed("db.ignore.external.exemptions.file", "db-ignore-external-exemptions.txt")
    if conf.resource_text(name) is None:
        return None
    rules = conf.copy()
    rules.set("urlfilter.regex.file", name)
    rules.set("urlfilter.regex.rules", "")
    return RegexURLFilter(rules)
