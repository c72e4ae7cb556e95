"""indexer-csv: writes documents as CSV rows, after Nutch 1's CSVIndexWriter."""

from __future__ import annotations

import codecs
from pathlib import Path

from nutch2py.errors import ConfigurationError
from nutch2py.indexer.index_writers import WriterParameters
from nutch2py.indexer.writers.file_writer import FileIndexWriter
from nutch2py.records.document import NutchDocument
from nutch2py.support.reporting import warn

_RECORD_SEPARATOR = "\r\n"


class CSVIndexWriter(FileIndexWriter):
    """Writes ``<outpath>/nutch.csv``: one row per document, in their order; deletes are not written.

    Parameters (index-writers.xml, or properties ``indexer-csv.NAME``): ``fields`` (columns, ``id,title,content``),
    ``charset`` (UTF-8), ``separator`` (``,``), ``valuesep`` (``|``), ``quotechar`` and ``escapechar`` (``"``; the
    escape precedes a quote within quotes), ``maxfieldlength`` (characters, 4096), ``maxfieldvalues`` (12), ``header``
    (true), ``outpath`` (``csvindexwriter``). Several values of a field are always quoted together.

    ``index -reindex`` empties the file first; Nutch 1 does so at every run.
    """

    java_class = "org.apache.nutch.indexwriter.csv.CSVIndexWriter"
    plugin_id = "indexer-csv"

    def configure(self, parameters: WriterParameters) -> Path:
        """Apply the parameters; raise ConfigurationError for an invalid one."""
        self.fields = [name.strip() for name in parameters.get("fields", "id,title,content").split(",") if name.strip()]
        self.charset = parameters.get("charset", "UTF-8").strip()
        try:
            codecs.lookup(self.charset)
        except LookupError:
            raise ConfigurationError(f"charset {self.charset!r} of indexer-csv is unknown: write UTF-8") from None
        self.separator = parameters.get("separator", ",")
        self.value_separator = parameters.get("valuesep", "|")
        self.quote_char = _single_character("quotechar", parameters.get("quotechar", '"'))
        self.escape_char = _single_character("escapechar", parameters.get("escapechar", '"'))
        self.max_field_length = parameters.get_int("maxfieldlength", 4096)
        self.max_field_values = parameters.get_int("maxfieldvalues", 12)
        self.has_header = parameters.get_bool("header", True)
        self.output_dir = parameters.get_path("outpath", "csvindexwriter")
        return self.output_dir / "nutch.csv"

    def header(self) -> bytes:
        """Return the header row, if it is enabled."""
        names = self.separator.join(self.fields) + _RECORD_SEPARATOR
        return names.encode(self.charset, "replace") if self.has_header else b""

    def write(self, document: NutchDocument) -> None:
        """Add a row; a column without a field is empty."""
        row = self.separator.join(self._format_cell(document.values(name)) for name in self.fields)
        self.add_record((row + _RECORD_SEPARATOR).encode(self.charset, "replace"))

    def delete(self, document_id: str) -> None:
        """Do nothing: CSV has no deletes."""

    def describe(self) -> str:
        """Return the settings."""
        return (
            f"CSVIndexWriter\n\toutpath : {self.output_dir}\n\tfields : {','.join(self.fields)}\n"
            f"\tcharset : {self.charset}\n\tseparator : {self.separator!r}\n\tvaluesep : {self.value_separator!r}\n"
            f"\tquotechar : {self.quote_char!r}\n\tescapechar : {self.escape_char!r}\n"
            f"\tmaxfieldlength : {self.max_field_length}\n\tmaxfieldvalues : {self.max_field_values}\n"
            f"\theader : {self.has_header}\n"
        )

    def _format_cell(self, values: list[str]) -> str:
        if len(values) == 1:
            value = values[0]
            special = (self.quote_char, *self.separator, *_RECORD_SEPARATOR)
            if self.quote_char and any(mark in value for mark in special):
                return self.quote_char + self._escape(value) + self.quote_char
            return value[: self.max_field_length]
        if not values:
            return ""
        return (
            self.quote_char
            + self.value_separator.join(map(self._escape, values[: self.max_field_values]))
            + self.quote_char
        )

    def _escape(self, value: str) -> str:
        clipped = value[: self.max_field_length]
        return clipped.replace(self.quote_char, self.escape_char + self.quote_char) if self.quote_char else clipped


def _single_character(name: str, text: str) -> str:
    if len(text) > 1:
        warn(f"{name} of indexer-csv is {text!r}: using its first character only")
    return text[:1]
