"""index-metadata: entries of a row's metadata, and response headers, as fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_more import response_header
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.cells import decode_text
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

_META_PREFIX = "meta_"  # prefix of parse-metatags in Nutch 2
_METATAG_PREFIX = "metatag."  # the same in Nutch 1


def metadata_values(page: WebPage, name: str) -> list[str]:
    """Return the values of a metadata entry; the table separates several values by tabs.

    ``metatag.NAME``, as Nutch 1 calls the meta tags of a page, is the entry ``meta_name`` of Nutch 2.
    """
    cell = page.metadata.get(name)
    if cell is None and name.startswith(_METATAG_PREFIX):
        cell = page.metadata.get(_META_PREFIX + name.removeprefix(_METATAG_PREFIX).lower())
    return [] if cell is None else decode_text(cell).split("\t")


class MetadataIndexer(IndexingFilter):
    """Adds metadata as fields.

    ``index.metadata`` (Nutch 2): meta tags, as fields ``meta_<name>``. ``index.parse.md``, ``index.db.md`` (Nutch 1):
    entries of the metadata by their own names (Nutch 2's table stores both together). ``index.content.md``: response
    headers. Values are trimmed, empty ones skipped. ``index.metadata.separator`` separates the values of the fields in
    ``index.metadata.multivalued.fields``.
    """

    java_class = "org.apache.nutch.indexer.metadata.MetadataIndexer"
    fields = frozenset({WebPage.metadata, WebPage.headers})

    def __init__(self, conf: Configuration) -> None:
        self.tags = conf.get_strings("index.metadata")
        self.entries = [*conf.get_strings("index.db.md"), *conf.get_strings("index.parse.md")]
        self.headers = conf.get_strings("index.content.md")
        self.separator = conf.get("index.metadata.separator") or ""
        self.multivalued_fields = frozenset(conf.get_strings("index.metadata.multivalued.fields"))

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the fields."""
        for name in self.tags:
            self._add_values(document, _META_PREFIX + name, metadata_values(page, _META_PREFIX + name.lower()))
        for name in self.entries:
            self._add_values(document, name, metadata_values(page, name))
        for name in self.headers:
            value = response_header(page, name)
            if value is not None:
                self._add_values(document, name, [value])
        return document

    def _add_values(self, document: NutchDocument, name: str, values: Iterable[str]) -> None:
        for value in values:
            for part in self._split_value(name, value):
                if part.strip():
                    document.add(name, part.strip())

    def _split_value(self, name: str, value: str) -> Iterator[str]:
        if self.separator and name in self.multivalued_fields:
            yield from value.split(self.separator)
        else:
            yield value
