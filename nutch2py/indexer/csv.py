"""indexer-csv: documents as rows of a table, after Nutch 1's CSVIndexWriter."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from pathlib import Path

from nutch2py.conf import Configuration, warn
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.appendfile import AppendFile
from nutch2py.indexer.document import NutchDocument
from nutch2py.indexer.writers import Parameters

_RECORD_SEPARATOR = "\r\n"
_BATCH_BYTES = 4_000_000


class CSVIndexWriter:
    """Writes ``<outpath>/nutch.csv``: a row a document, in the order they come; deletes are not written.

    Parameters (index-writers.xml, or properties ``indexer-csv.NAME``): ``fields`` (columns, ``id,title,content``),
    ``charset`` (UTF-8), ``separator`` (``,``), ``valuesep`` (``|``), ``quotechar`` and ``escapechar`` (``"``; a quote
    within quotes is preceded by the escape), ``maxfieldlength`` (characters, 4096), ``maxfieldvalues`` (12),
    ``header`` (true), ``outpath`` (``csvindexwriter``). The values of a field with several are always quoted
    together.

    Every job adds its rows, so that a crawl of several rounds has them all; ``index -reindex`` empties the file first
    (Nutch 1 does at every run).
    """

    java_class = "org.apache.nutch.indexwriter.csv.CSVIndexWriter"

    def __init__(self, conf: Configuration) -> None:
        self._rows: list[bytes] = []
        self._size = 0
        self._configure(conf, {})

    def _configure(self, conf: Configuration, given: Mapping[str, str]) -> None:
        parameters = Parameters(conf, "indexer-csv", given)
        self.fields = [name.strip() for name in parameters.get("fields", "id,title,content").split(",") if name.strip()]
        self.charset = parameters.get("charset", "UTF-8").strip()
        try:
            codecs.lookup(self.charset)
        except LookupError:
            raise ConfigurationError(f"charset {self.charset!r} of indexer-csv is not known: write UTF-8") from None
        self.separator = parameters.get("separator", ",")
        self.value_separator = parameters.get("valuesep", "|")
        self.quote = _character("quotechar", parameters.get("quotechar", '"'))
        self.escape = _character("escapechar", parameters.get("escapechar", '"'))
        self.max_length = parameters.get_int("maxfieldlength", 4096)
        self.max_values = parameters.get_int("maxfieldvalues", 12)
        self.header = parameters.get_bool("header", True)
        self.folder = Path(parameters.get("outpath", "csvindexwriter").strip())
        self._file = AppendFile(self.folder / "nutch.csv", conf.get_float("index.lock.timeout", 300.0))

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Empty the file when everything is indexed anew."""
        self._configure(conf, parameters)
        if reindex:
            self._file.clear()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Take over the parameters; the file is touched by the first batch."""
        self._configure(conf, parameters)

    def write(self, document: NutchDocument) -> None:
        """Add a row; a column that the document lacks is empty."""
        row = self.separator.join(self._cell(document.values(name)) for name in self.fields)
        self._rows.append((row + _RECORD_SEPARATOR).encode(self.charset, "replace"))
        self._size += len(self._rows[-1])
        if self._size > _BATCH_BYTES:
            self.commit()

    def update(self, document: NutchDocument) -> None:
        """Add a row."""
        self.write(document)

    def delete(self, document_id: str) -> None:
        """Do nothing: a table of rows has no deletes."""

    def commit(self) -> None:
        """Append the gathered rows to the file."""
        if self._rows:
            header = (self.separator.join(self.fields) + _RECORD_SEPARATOR).encode(self.charset, "replace")
            self._file.append(b"".join(self._rows), header if self.header else b"")
            self._rows, self._size = [], 0

    def close(self) -> None:
        """Append what is left."""
        self.commit()

    def describe(self) -> str:
        """Return the settings."""
        return (
            f"CSVIndexWriter\n\toutpath : {self.folder}\n\tfields : {','.join(self.fields)}\n"
            f"\tcharset : {self.charset}\n\tseparator : {self.separator!r}\n\tvaluesep : {self.value_separator!r}\n"
            f"\tquotechar : {self.quote!r}\n\tescapechar : {self.escape!r}\n"
            f"\tmaxfieldlength : {self.max_length}\n\tmaxfieldvalues : {self.max_values}\n\theader : {self.header}\n"
        )

    def _cell(self, values: list[str]) -> str:
        if len(values) == 1:
            value = values[0]
            special = (self.quote, *self.separator, *_RECORD_SEPARATOR)
            if self.quote and any(mark in value for mark in special):
                return self.quote + self._escaped(value) + self.quote
            return value[: self.max_length]
        if not values:
            return ""
        return self.quote + self.value_separator.join(map(self._escaped, values[: self.max_values])) + self.quote

    def _escaped(self, value: str) -> str:
        clipped = value[: self.max_length]
        return clipped.replace(self.quote, self.escape + self.quote) if self.quote else clipped


def _character(name: str, text: str) -> str:
    if len(text) > 1:
        warn(f"{name} of indexer-csv is one character: of {text!r} the first is used")
    return text[:1]
