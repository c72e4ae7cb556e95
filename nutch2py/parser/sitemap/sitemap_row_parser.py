"""Parses fetched sitemaps into rows, as ``parse -sitemap`` writes them (Nutch's ParseUtil.processSitemapParse)."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.row_parser import ParseOutcome, RowParser
from nutch2py.parser.sitemap.sitemap_parser import MAX_SITEMAP_BYTES, MAX_SITEMAP_URLS, SitemapEntry, parse_sitemap
from nutch2py.records.cells import ParseStatus
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import INJECTED_PAGE, CrawlStatus, Mark, ParseStatusCode, WebPage
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.url_length import max_url_length

_FETCH_INTERVALS = {
    "ALWAYS": 3_600,
    "HOURLY": 3_600,
    "DAILY": 86_400,
    "WEEKLY": 604_800,
    "MONTHLY": 2_628_000,
    "YEARLY": 31_536_000,
    "NEVER": 31_536_000,
}
"""Fetch interval in seconds by change frequency, as in Nutch 2."""


class SitemapOutcome(NamedTuple):
    """Outcome of a sitemap's row, and its entries by row key (see :func:`entry_to_row`)."""

    outcome: ParseOutcome
    entries: dict[str, SitemapEntry]


class SitemapRowParser:
    """Parses the rows of sitemaps (inject mark ``s``).

    Nutch stops at the first URL that a filter rejects and at an entry without date or frequency; here the others are
    read. Only the fields that the sitemap sets change in a row; Nutch clears its marks and metadata.
    """

    def __init__(self, conf: Configuration, row_parser: RowParser) -> None:
        self._row_parser = row_parser
        self._max_bytes = conf.get_int("sitemap.size.max", MAX_SITEMAP_BYTES)
        self._max_urls = max(1, conf.get_int("sitemap.entries.max", MAX_SITEMAP_URLS))
        self._max_length = max_url_length(conf)
        self._is_strict = conf.get_bool("sitemap.strict.parsing")
        self.fields: frozenset[RecordField] = row_parser.fields | {WebPage.sitemaps}

    def parse_row(self, key: str, page: WebPage) -> SitemapOutcome:
        """Parse the sitemap of row ``key``; set status, signature and mark, and ``sitemaps`` for an index."""
        if page.status != CrawlStatus.FETCHED:
            return SitemapOutcome(ParseOutcome("notfetched"), {})
        url = unreverse_url(key)
        try:
            sitemap = parse_sitemap(
                page.content or b"",
                max_bytes=self._max_bytes,
                max_urls=self._max_urls,
                max_url_length=self._max_length,
            )
        except ValueError as error:
            page.parse_status = status = ParseStatus(
                ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (f"sitemap: {error}",)
            )
            return SitemapOutcome(ParseOutcome("failed", status, message=f"{url}: {status.args[0]}"), {})
        page.parse_status = status = ParseStatus(ParseStatusCode.SUCCESS)
        self._row_parser.update_signature(url, page)
        mark = page.markers.get(Mark.FETCH)
        if mark is not None:
            page.markers[Mark.PARSE] = mark
        listed: dict[str, SitemapEntry] = {}
        skipped = Counter[str]()
        for entry in sitemap.entries:
            target = self._row_parser.outlink_filter.accept(entry.url)
            if target is None:
                skipped[self._row_parser.outlink_filter.rejection_reason(entry.url)] += 1
                continue
            if target == url:  # a reference to itself adds nothing
                continue
            if self._is_strict and not target.startswith(_base_path(url)):
                skipped["sitemap.strict.parsing"] += 1
                continue
            if sitemap.is_index:
                page.sitemaps[target] = "parser"
            else:
                listed[reverse_url(target)] = entry
        return SitemapOutcome(ParseOutcome("success", status, skipped_links=tuple(skipped.items())), listed)


def _base_path(url: str) -> str:
    """Return the required prefix of a sitemap's URLs (sitemaps.org, "Sitemap file location")."""
    return url.partition("?")[0].rpartition("/")[0] + "/"


def entry_to_row(entry: SitemapEntry, inject_mark: str | None = INJECTED_PAGE) -> WebPage:
    """Return the changes to the row of a listed URL.

    ``inject_mark``: the mark of a page, so that it is generated; None keeps the row's mark. Nutch marks listed pages as
    sitemaps and then never fetches them as pages.
    """
    page = WebPage(fields=frozenset())
    if entry.change_frequency is not None:
        page.fetch_interval = _FETCH_INTERVALS[entry.change_frequency]
        page.metadata["changeFrequency"] = entry.change_frequency.encode()
    if entry.last_modified is not None:
        page.modified_time = entry.last_modified
        page.metadata["lastModified"] = str(entry.last_modified).encode()
    page.stm_priority = entry.priority
    page.metadata["priority"] = repr(entry.priority).encode()
    for name, value in entry.extensions.items():
        page.metadata[f"sitemap.{name}"] = value.encode("utf-8", "replace")
    if inject_mark is not None:
        page.markers[Mark.INJECT] = inject_mark
    return page
