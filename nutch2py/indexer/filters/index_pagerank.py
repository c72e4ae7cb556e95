"""index-pagerank: the PageRank of a page, scaled so that the mean of all pages is 1."""

from __future__ import annotations

from functools import cached_property

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument, format_java_float
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import open_store

MEAN_RANK_ROW = "m/pagerank"
"""Row of the derived table with the mean of all ranks in ``data``, as decimal text."""


class PageRankIndexingFilter(IndexingFilter):
    """Adds ``pagerank``, except for pages that are newer than the last PageRankJob.

    Since the mean is 1, a site can change the formula or its parameters and keep the weights of its searches.
    """

    fields = frozenset({WebPage.page_rank})

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    @cached_property
    def mean_rank(self) -> float:
        """Mean rank of the pages in the table, 1 when unknown."""
        store = open_store(self.conf, DerivedRow)
        entry = store.get(MEAN_RANK_ROW, {DerivedRow.data}) if store.exists() else None
        mean = float(entry.data) if entry is not None and entry.data else 1.0
        return mean if mean > 0 else 1.0

    def scaled_rank(self, page: WebPage) -> str | None:
        """Return the field of a page, None without a rank."""
        return format_java_float(page.page_rank / self.mean_rank) if page.page_rank > 0 else None

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the field."""
        value = self.scaled_rank(page)
        if value is not None:
            document.add("pagerank", value)
        return document
