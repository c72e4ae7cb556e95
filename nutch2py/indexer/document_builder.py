"""DocumentBuilder: builds the document of a page, or decides to delete it (Nutch 2's IndexUtil)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import Enum

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.indexing_filters import IndexingFilters
from nutch2py.interfaces import PageNotIndexableError
from nutch2py.parser.robots_directives import agent_names, parse_meta_robots, parse_x_robots_tag, reads_robots_header
from nutch2py.records.document import NutchDocument, format_java_float
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, ParseStatusCode, WebPage
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.support.reporting import warn
from nutch2py.url.keys import unreverse_url

ROBOTS_METADATA_KEYS = ("robots", "meta_robots", "metatag.robots")
"""Metadata entries with a page's robots directives: the parser's own, and those of parse-metatags (2.x, 1.x)."""


_HTML_TYPES = ("text/html", "application/xhtml+xml")
_GONE_STATUSES = (CrawlStatus.GONE, CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)


class IndexAction(Enum):
    """Action of a job for the document of a page."""

    ADD = "add"
    DELETE = "delete"
    SKIP = "skip"


def should_index(page: WebPage) -> bool:
    """Return whether a page was parsed and is not a redirect (Nutch's ``IndexerMapper``)."""
    status = page.parse_status
    return status is not None and status.major == ParseStatusCode.SUCCESS and status.minor != ParseStatusCode.REDIRECT


def is_gone(page: WebPage) -> bool:
    """Return whether the URL no longer has a page: it is gone or redirects.

    A redirect by meta refresh is visible in the parse status only: such a page has the status of a fetched page, and
    gets neither parse nor update mark.
    """
    status = page.parse_status
    redirects = status is not None and status.major == ParseStatusCode.SUCCESS
    return page.status in _GONE_STATUSES or (
        redirects and status is not None and status.minor == ParseStatusCode.REDIRECT
    )


def is_broken(page: WebPage) -> bool:
    """Return whether the content of the last fetch is no valid document, so that the page's old text is gone.

    A parse that failed for another reason (time, memory, a plug-in, no parser) says nothing about the content.
    """
    status = page.parse_status
    return (
        page.status == CrawlStatus.FETCHED
        and status is not None
        and status.major == ParseStatusCode.FAILED
        and status.minor in (ParseStatusCode.INVALID_FORMAT, ParseStatusCode.MISSING_CONTENT)
    )


def find_deletion_reason(page: WebPage) -> str:
    """Return why the document of a page is to be deleted, whatever the page's content says; "" for no reason."""
    if page.status == CrawlStatus.GONE:
        return "gone"
    if is_gone(page):
        return "redirected"
    if is_broken(page):
        return "broken"
    return "duplicate" if duplicate_of(page) is not None else ""


def duplicate_of(page: WebPage) -> str | None:
    """Return the row key of the page that represents this duplicate, None when the page is no duplicate.

    DeduplicationJob stores it with the signature of both pages: a page that has changed since is no duplicate. Uses
    metadata and signature.
    """
    mark = page.metadata.get(MetadataKey.DUPLICATE)
    if mark is None:
        return None
    signature, _, key = mark.decode("utf-8", "replace").partition(" ")
    return key if signature == (page.signature or b"").hex() else None


def is_noindex(page: WebPage, agents: AbstractSet[str] = frozenset(), *, reads_header: bool = True) -> bool:
    """Return whether the page forbids indexing in its meta robots or in X-Robots-Tag.

    ``noindex`` and ``none`` count, read as the parser reads them; an X-Robots-Tag for another agent
    (``otherbot: noindex``) does not. Nutch's HTML parser does not store the directive, but leaves title and text of
    such a page empty. So an HTML page with neither counts as noindex; no query could match it anyway.

    Args:
        page: the page.
        agents: names of this crawler (:func:`nutch2py.parser.robots_directives.agent_names`).
        reads_header: whether X-Robots-Tag counts.
    """
    if page.content_type in _HTML_TYPES and not page.title and not page.text:
        return True
    return has_noindex_directive(page, agents, reads_header=reads_header)


def has_noindex_directive(page: WebPage, agents: AbstractSet[str] = frozenset(), *, reads_header: bool = True) -> bool:
    """Return whether the stored meta robots or X-Robots-Tag of a page forbids indexing; see :func:`is_noindex`."""
    for key in ROBOTS_METADATA_KEYS:
        value = page.metadata.get(key)
        if value and "noindex" in parse_meta_robots(value.decode("utf-8", "replace")):
            return True
    return reads_header and "noindex" in parse_x_robots_tag(page.headers, agents)


class DocumentBuilder:
    """Builds documents of pages with the enabled indexing and scoring filters.

    ``fields``: fields of a page that a job must read. :meth:`decide_action` uses ``indexer.delete``,
    ``indexer.delete.robots.noindex`` and ``indexer.delete.skipped.by.indexingfilter``.
    """

    def __init__(self, conf: Configuration) -> None:
        self.filters = IndexingFilters(conf)
        self.scoring = ScoringFilters(conf)
        self.delete_gone = conf.get_bool("indexer.delete", True)
        self.delete_noindex = conf.get_bool("indexer.delete.robots.noindex", True)
        self.delete_skipped = conf.get_bool("indexer.delete.skipped.by.indexingfilter", False)
        self.agents = agent_names(conf)
        self._reads_robots_header = reads_robots_header(conf)
        own: set[RecordField] = {
            WebPage.status,
            WebPage.signature,
            WebPage.parse_status,
            WebPage.score,
            WebPage.markers,
            WebPage.batch_id,
            WebPage.metadata,
        }
        if self.delete_noindex:
            own |= {WebPage.headers, WebPage.content_type, WebPage.title, WebPage.text}
        self.fields: frozenset[RecordField] = frozenset(own) | self.filters.fields | self.scoring.fields

    def is_noindex(self, page: WebPage) -> bool:
        """Return whether the page forbids this crawler to index it."""
        return is_noindex(page, self.agents, reads_header=self._reads_robots_header)

    def build(self, key: str, page: WebPage) -> NutchDocument | None:
        """Return the document of a row, None for a page that a filter drops, with noindex, or not parsed.

        ``id`` is the row key (applications know it as Nutch's), ``digest`` the signature in hexadecimal, ``boost`` the
        result of the scoring filters for 1.0. A page that a filter rejects is logged and skipped.

        Raises:
            nutch2py.plugins.plugin_failures.PluginError: A filter fails.

        """
        if not should_index(page) or (self.delete_noindex and self.is_noindex(page)):
            return None
        try:
            return self._build_document(key, page)
        except (PageNotIndexableError, ValueError) as error:
            warn(f"Error indexing {key}: {error}")
            return None

    def decide_action(self, key: str, page: WebPage) -> tuple[IndexAction, NutchDocument | None]:
        """Return the action for the row's document, with the document to add.

        Documents of gone and redirecting pages (``indexer.delete``), pages with noindex
        (``indexer.delete.robots.noindex``) and duplicates are deleted. The document of a page that a filter drops is
        deleted if it was indexed before (``indexer.delete``), or with ``indexer.delete.skipped.by.indexingfilter``. A
        page whose content is broken (:func:`is_broken`) loses its document (``indexer.delete``). One that could not be
        parsed for another reason, or that a filter rejects, keeps it.
        """
        if is_gone(page):
            return (IndexAction.DELETE if self.delete_gone else IndexAction.SKIP), None
        if not should_index(page):
            return (IndexAction.DELETE if self.delete_gone and is_broken(page) else IndexAction.SKIP), None
        if duplicate_of(page) is not None:
            return IndexAction.DELETE, None
        if self.delete_noindex and self.is_noindex(page):
            return IndexAction.DELETE, None
        try:
            document = self._build_document(key, page)
        except (PageNotIndexableError, ValueError) as error:
            warn(f"Error indexing {key}: {error}")
            return (IndexAction.DELETE if self.delete_skipped else IndexAction.SKIP), None
        if document is not None:
            return IndexAction.ADD, document
        indexed = self.delete_gone and page.markers.get(Mark.INDEX) is not None
        return (IndexAction.DELETE if self.delete_skipped or indexed else IndexAction.SKIP), None

    def _build_document(self, key: str, page: WebPage) -> NutchDocument | None:
        new = NutchDocument()
        new.add("id", key)
        new.add("digest", (page.signature or b"").hex())
        if page.batch_id is not None:
            new.add("batchId", page.batch_id)
        url = unreverse_url(key)
        document = self.filters.filter(new, url, page)
        if document is None:
            return None
        boost = self.scoring.indexer_score(url, page, 1.0)
        document.score = boost
        document.add("boost", format_java_float(boost))
        return document
