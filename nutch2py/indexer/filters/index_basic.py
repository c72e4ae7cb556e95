"""index-basic: host, url, content, title, cache and tstamp, named as by Nutch's BasicIndexingFilter."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_dates import format_solr_date
from nutch2py.interfaces import IndexingFilter, PageNotIndexableError
from nutch2py.parser.html.main_text import MAIN_TEXT_KEY, main_or_full_text
from nutch2py.parser.robots_directives import caching_restriction
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.url.display_url import display_host
from nutch2py.url.java_url import parse_url
from nutch2py.url.url_parts import DomainRules


def indexed_host(url: str) -> str:
    """Return the host of a URL, with its case and brackets; raise PageNotIndexableError for an invalid URL."""
    try:
        return parse_url(url).host
    except ValueError as error:
        raise PageNotIndexableError(f"{url!r} is not a URL ({error}): the page is not indexed") from None


def page_fetch_time(page: WebPage) -> int:
    """Return the time of the page's last fetch, in ms since 1970.

    ``fetchTime`` is that time until updatedb replaces it by the time of the next fetch, ``fetchInterval`` later;
    ``prevFetchTime`` is the time when the page was due. Nutch 1.x and 2.2 wrongly indexed the next fetch time as
    ``tstamp``, and 2.4 the time when the page was due (NUTCH-2045). After updatedb the fetch was one interval before
    the next fetch. After a failed refetch, with an earlier next fetch, the due time is the best estimate.
    """
    fetch_time = page.fetch_time
    if Mark.UPDATEDB not in page.markers or Mark.FETCH in page.markers:
        return fetch_time
    return max(fetch_time - page.fetch_interval * 1000, page.prev_fetch_time)


def strip_replacement_characters(value: str | None) -> str:
    """Return a text without replacement characters (U+FFFD), which Nutch does not index."""
    return value.replace("\ufffd", "") if value else ""


class BasicIndexingFilter(IndexingFilter):
    """Adds the basic fields of a search.

    Properties: ``indexer.max.title.length`` and ``indexer.max.content.length`` (characters, -1: no limit; the latter is
    of Nutch 1.x), ``indexer.add.domain`` (add the registered domain as ``domain``), ``indexer.host.unicode`` (both
    hosts in Unicode), ``indexer.content.main`` (index the main text as ``content``, where it exists, instead of as
    ``maintext``).
    """

    java_class = "org.apache.nutch.indexer.basic.BasicIndexingFilter"
    fields = frozenset(
        {
            WebPage.title,
            WebPage.text,
            WebPage.fetch_time,
            WebPage.prev_fetch_time,
            WebPage.fetch_interval,
            WebPage.repr_url,
            WebPage.markers,
            WebPage.metadata,
        }
    )

    def __init__(self, conf: Configuration) -> None:
        self.max_title_length = conf.get_int("indexer.max.title.length", 100)
        self.max_content_length = conf.get_int("indexer.max.content.length", -1)
        self._domain_of = DomainRules.from_conf(conf).domain_of
        self.add_domain = conf.get_bool("indexer.add.domain", False)
        self._format_host = display_host if conf.get_bool("indexer.host.unicode", False) else str
        self.use_main_text = conf.get_bool("indexer.content.main", False)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add host, url, content, title, cache, tstamp (and domain)."""
        shown_url = strip_replacement_characters(page.repr_url) or url
        host = indexed_host(shown_url)
        document.add("host", self._format_host(host))
        if self.add_domain:
            document.add("domain", self._format_host(self._domain_of(shown_url)))
        document.add("url", shown_url)
        text = page.text
        if MAIN_TEXT_KEY in page.metadata:
            if self.use_main_text:
                text = main_or_full_text(page)
            else:
                document.add(
                    "maintext",
                    _truncate(strip_replacement_characters(main_or_full_text(page)), self.max_content_length),
                )
        document.add("content", _truncate(strip_replacement_characters(text), self.max_content_length))
        title = _truncate(strip_replacement_characters(page.title), self.max_title_length)
        if title:
            document.add("title", title)
        caching = caching_restriction(page)
        if caching is not None:
            document.add("cache", caching)
        document.add("tstamp", format_solr_date(page_fetch_time(page)))
        return document


def _truncate(text: str, limit: int) -> str:
    return text[:limit] if 0 <= limit < len(text) else text
