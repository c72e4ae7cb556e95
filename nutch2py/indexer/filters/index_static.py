"""index-static (Nutch 1): constant fields of every document."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class StaticFieldIndexer(IndexingFilter):
    """Adds the fields in ``index.static``: ``field:value value,field:value``.

    The separators are ``index.static.fieldsep``, ``.keysep`` and ``.valuesep``. A part without exactly one key
    separator is skipped; the last values of a repeated field apply, as in Nutch.
    """

    java_class = "org.apache.nutch.indexer.staticfield.StaticFieldIndexer"
    fields: frozenset[RecordField] = frozenset()

    def __init__(self, conf: Configuration) -> None:
        field_separator = conf.get("index.static.fieldsep") or ","
        key_separator = conf.get("index.static.keysep") or ":"
        value_separator = conf.get("index.static.valuesep") or " "
        self.static_values: dict[str, list[str]] = {}
        for part in (conf.get("index.static") or "").split(field_separator):
            pieces = part.split(key_separator)
            while len(pieces) > 1 and not pieces[-1]:  # as Java's split: no trailing empty strings
                pieces.pop()
            if len(pieces) == 2 and pieces[0].strip():
                values = (value.strip() for value in pieces[1].strip().split(value_separator))
                self.static_values[pieces[0].strip()] = [value for value in values if value]

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the fields."""
        for name, values in self.static_values.items():
            for value in values:
                document.add(name, value)
        return document
