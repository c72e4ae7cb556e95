"""feed: fields of a feed's entry, from the metadata that the feed parser stores."""

from __future__ import annotations

import re

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_dates import format_solr_date, parse_date
from nutch2py.indexer.filters.index_metadata import metadata_values
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

_MILLISECONDS = re.compile(r"-?[0-9]{1,18}")


class FeedIndexingFilter(IndexingFilter):
    """Adds ``author``, ``tag``, ``feed``, ``publishedDate`` and ``updatedDate``.

    The metadata has ``author``, ``tag`` (several values separated by tabs), ``feed``, and ``published`` and ``updated``
    in milliseconds since 1970, as Nutch's parser writes them, or as a date.
    """

    java_class = "org.apache.nutch.indexer.feed.FeedIndexingFilter"
    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        """Accept the configuration; the filter has no properties."""

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the fields."""
        for name in ("author", "tag", "feed"):
            for value in metadata_values(page, name):
                if value.strip():
                    document.add(name, value.strip())
        for name in ("published", "updated"):
            for value in metadata_values(page, name)[:1]:
                text = value.strip()
                time = int(text) if _MILLISECONDS.fullmatch(text) else parse_date(text)
                if time is not None:
                    document.add(f"{name}Date", format_solr_date(time))
        return document
