"""index-basic: host, url, content, title, cache and tstamp, as Nutch's BasicIndexingFilter names them."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_dates import format_solr_date
from nutch2py.interfaces import IndexingFilter, PageNotIndexableError
from nutch2py.parser.html.main_text import MAIN_TEXT_KEY, main_or_full_text
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from nutch2py.url.java_url import parse_url
from nutch2py.url.url_parts import domain_of


def indexed_host(url: str) -> str:
    """Return the host of a URL as it is written (case and brackets kept); PageNotIndexable when it is not a URL."""
    try:
        return parse_url(url).host
    except ValueError as error:
        raise PageNotIndexableError(f"{url!r} is not a URL ({error}): the page is not indexed") from None


def page_fetch_time(page: WebPage) -> int:
    """Return when the page was fetched, in ms since 1970.

    ``fetchTime`` is that time until updatedb makes it the time of the next fetch, ``fetchInterval`` later, and
    ``prevFetchTime`` is when the page had been due. Nutch 1.x and 2.2 indexed the next fetch time as ``tstamp`` and 2.4
    the time the page had been due (NUTCH-2045): both wrong. A page that updatedb has seen was fetched one interval
    before its next fetch; after a failed refetch, whose next fetch is nearer, the due time is the best that is known.
    """
    fetch_time = page.fetch_time
    if Mark.UPDATEDB not in page.markers or Mark.FETCH in page.markers:
        return fetch_time
    return max(fetch_time - page.fetch_interval * 1000, page.prev_fetch_time)


def strip_replacement_characters(value: str | None) -> str:
    """Return a text of the table without the replacement characters (U+FFFD) that Nutch drops from an index."""
    return value.replace("\ufffd", "") if value else ""


class BasicIndexingFilter(IndexingFilter):
    """Adds the fields every search needs.

    Properties: ``indexer.max.title.length`` (characters, -1: no limit), ``indexer.max.content.length`` (the same, of
    Nutch 1.x), ``indexer.add.domain`` (also add the registered domain as ``domain``), ``indexer.content.main`` (let
    the content be the main text of pages that have one; without it that is a field of its own, ``maintext``).
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
        self.add_domain = conf.get_bool("indexer.add.domain", False)
        self.use_main_text = conf.get_bool("indexer.content.main", False)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add host, url, content, title, cache, tstamp (and domain)."""
        shown = strip_replacement_characters(page.repr_url) or url
        host = indexed_host(shown)
        document.add("host", host)
        if self.add_domain:
            document.add("domain", domain_of(shown))
        document.add("url", shown)
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
        caching = page.metadata.get(MetadataKey.CACHING_FORBIDDEN)
        if caching is not None and caching != b"none":
            document.add("cache", caching.decode("utf-8", "replace"))
        document.add("tstamp", format_solr_date(page_fetch_time(page)))
        return document


def _truncate(text: str, limit: int) -> str:
    return text[:limit] if 0 <= limit < len(text) else text
