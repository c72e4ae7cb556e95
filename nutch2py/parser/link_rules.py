"""Which links of a page are kept: normalizers, filters, and the limits of ``nutch-default.xml`` (Nutch's ParseUtil).

Nutch 2 ships ``db.ignore.internal.links`` as true and reads it nowhere: obeyed, it would take every link within a site
from those who bring their configuration along. It counts unless a folder's own ``nutch-default.xml`` says true.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink
from nutch2py.short_cache import ShortMemory, short_cache
from nutch2py.url.filter_regex import RegexURLFilter
from nutch2py.url.parts import domain_of_host, host_of
from nutch2py.url.url_filters import MALFORMED, URLFilters
from nutch2py.url.url_normalizers import URLNormalizers

EXTERNAL, INTERNAL = "db.ignore.external.links", "db.ignore.internal.links"
_NUMBER = "db.max.outlinks.per.page"
_LENGTHS = (("parser.html.outlinks.max.target.length", 3000), ("db.max.outlink.length", 4096))
_INTERNAL = re.compile(r"<name>\s*db\.ignore\.internal\.links\s*</name>\s*<value>\s*true\s*</value>")
# URLs, and the characters of one: pages of one site link to the same targets over and over
_REMEMBERED, _REMEMBERED_LENGTH = 16_384, 1024


class LinkRules:
    """The rules of one configuration. Remembers what became of the last targets."""

    def __init__(self, conf: Configuration) -> None:
        self._filters = URLFilters(conf)
        self._outlink = URLNormalizers(conf, "outlink")
        self._fetcher = URLNormalizers(conf, "fetcher")
        most = conf.get_int(_NUMBER, 100)
        self._most = most if most >= 0 else None
        lengths = [(conf.get_int(name, default), name) for name, default in _LENGTHS]
        self._max_length, self._length_name = min([each for each in lengths if each[0] >= 0], default=(sys.maxsize, ""))
        anchor = conf.get_int("db.max.anchor.length", -1)
        self._max_anchor = anchor if anchor >= 0 else None
        self._use_filters = conf.get_bool("parse.filter.urls", True)
        self._use_normalizers = conf.get_bool("parse.normalize.urls", True)
        self._ignore_external = conf.get_bool(EXTERNAL)
        self._ignore_internal = conf.get_bool(INTERNAL) and not _listed_by_nutch_2(conf)
        self._by_domain = conf.get_trimmed("db.ignore.external.links.mode", "byHost").lower() == "bydomain"
        self._exempt = _exemptions(conf) if self._ignore_external else None
        self._accepted = ShortMemory(self._accept, _REMEMBERED, _REMEMBERED_LENGTH)
        self.refuser = short_cache(_REMEMBERED, _REMEMBERED_LENGTH)(self._refused_by)

    def accept(self, url: str) -> str | None:
        """Return the URL normalized (scope outlink), None when it is no URL or a filter rejects it."""
        return self._accepted[url]

    def _accept(self, url: str) -> str | None:
        try:
            target = self._outlink.normalize(url) if self._use_normalizers else url
            return None if target is None else self._filters.accept(target) if self._use_filters else target
        except ValueError:
            return None

    def _refused_by(self, url: str) -> str:
        """Return what decided that :meth:`accept` gives nothing: the id of a filter, a property, or MALFORMED."""
        try:
            target = self._outlink.normalize(url) if self._use_normalizers else url
            return MALFORMED if target is None else self._filters.refuser(target)
        except ValueError:
            return MALFORMED

    def accept_redirect(self, url: str) -> str | None:
        """Return the target of a redirect normalized (scope fetcher), None when it is no URL or rejected."""
        try:
            target = self._fetcher.normalize(url)
            return None if target is None else self._filters.accept(target)
        except ValueError:
            return None

    def kept(self, url: str, outlinks: Sequence[Outlink], left_out: Counter[str] | None = None) -> dict[str, str]:
        """Return target -> anchor of the outlinks of page ``url`` that are kept: the first anchor of each target.

        ``db.max.outlinks.per.page`` counts the links of the page before any is left out, as in Nutch. ``left_out``
        counts the links that are not kept, by the property, or the filter's id, that decides.
        """
        if left_out is None:
            left_out = Counter()
        first = outlinks[: self._most]
        most = self._max_length
        links: Sequence[Outlink] = [link for link in first if len(link[0]) <= most]
        left_out[_NUMBER] += len(outlinks) - len(first)
        left_out[self._length_name] += len(first) - len(links)
        if self._ignore_external or self._ignore_internal:
            near = [link for link in links if self._follows(url, link.url)]
            left_out[EXTERNAL if self._ignore_external else INTERNAL] += len(links) - len(near)
            links = near
        kept: dict[str, str] = {}
        longest = self._max_anchor
        for written, anchor in links:
            target = self.accept(written)
            if target is None:
                left_out[self.refuser(written)] += 1
            elif target not in kept:
                kept[target] = anchor if longest is None else anchor[:longest]
        return kept

    def _follows(self, source: str, target: str) -> bool:
        """Tell whether a link is of the kind, within a site or out of it, that is not ignored."""
        place = self._place(source)
        internal = place is not None and self._place(target) == place
        if internal:
            return not self._ignore_internal
        return not self._ignore_external or (self._exempt is not None and self._exempt.filter(target) is not None)

    def _place(self, url: str) -> str | None:
        """Return the host of a URL, or its domain, by ``db.ignore.external.links.mode``; None when it has none."""
        try:
            host = host_of(url)
        except ValueError:
            return None
        return domain_of_host(host) if host and self._by_domain else host


def _listed_by_nutch_2(conf: Configuration) -> bool:
    """Tell whether the property may come from a Nutch 2 ``nutch-default.xml``, whose value Nutch 2 never reads."""
    return any(_INTERNAL.search(_text(folder / "nutch-default.xml")) for folder in conf.folders)


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _exemptions(conf: Configuration) -> RegexURLFilter | None:
    """Return the rules of the links that ``db.ignore.external.links`` lets pass, None without the file."""
    name = conf.get_trimmed("db.ignore.external.exemptions.file", "db-ignore-external-exemptions.txt")
    if conf.resource_text(name) is None:
        return None
    rules = conf.copy()
    rules.set("urlfilter.regex.file", name)
    rules.set("urlfilter.regex.rules", "")
    return RegexURLFilter(rules)
