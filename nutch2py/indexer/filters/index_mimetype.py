"""mimetype-filter (Nutch 1): restricts the index to media types."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import IndexingFilter
from nutch2py.parser.mime.mime_types import get_mime_resolver
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage


class MimeTypeIndexingFilter(IndexingFilter):
    """Drops pages by the rules of the file ``mimetype.filter.file``; without a file all are indexed.

    A line ``+`` allows all types except those with the prefixes in the other lines; ``-`` allows only these.
    """

    java_class = "org.apache.nutch.indexer.filter.MimeTypeIndexingFilter"
    fields = frozenset({WebPage.content_type})

    def __init__(self, conf: Configuration) -> None:
        self.mime_types = get_mime_resolver(conf)
        self.prefixes: tuple[str, ...] | None = None
        self.allows_unlisted = False
        name = conf.get_trimmed("mimetype.filter.file")
        if name:
            text = conf.resource_text(name)
            if text is None:
                raise ConfigurationError(
                    f"mimetype.filter.file: file {name} not found: correct the name or empty the property"
                )
            self._read_rules(text)

    def _read_rules(self, text: str) -> None:
        prefixes: list[str] = []
        for line in text.splitlines():
            if line.startswith(("+", "-")):
                self.allows_unlisted = line[0] == "+"
            elif line and not line.startswith((" ", "#")):
                prefixes.append(line.strip())
        self.prefixes = tuple(prefixes)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Return None for a page of an excluded type."""
        if self.prefixes is None:
            return document
        content_type = page.content_type
        name = (
            self.mime_types.type_by_url(url)
            if content_type is None
            else self.mime_types.table.canonical_name(content_type.partition(";")[0])
        )
        listed = (name or "").startswith(self.prefixes)
        return document if listed != self.allows_unlisted else None
