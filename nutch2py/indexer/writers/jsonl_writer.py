"""indexer-jsonl: writes documents as lines of JSON for other programs."""

from __future__ import annotations

from pathlib import Path

from nutch2py.indexer.index_writers import WriterParameters
from nutch2py.indexer.writers.file_writer import FileIndexWriter
from nutch2py.records.document import NutchDocument


class JSONLinesIndexWriter(FileIndexWriter):
    """Appends one JSON object per line to ``path`` (default ``index.jsonl``): a document, or ``{"delete": id}``.

    A field with one value is a string, one with several a list. The file is a log: a later line replaces an earlier
    one of the same id, and replaying it reproduces the index. Parameter ``path`` (index-writers.xml, or property
    ``indexer-jsonl.path``).
    """

    plugin_id = "indexer-jsonl"

    def configure(self, parameters: WriterParameters) -> Path:
        """Apply the path."""
        self.path = parameters.get_path("path", "index.jsonl")
        return self.path

    def write(self, document: NutchDocument) -> None:
        """Add a line, which replaces an earlier one."""
        self._add_line(document.to_json())

    def delete(self, document_id: str) -> None:
        """Add a line for a delete."""
        self._add_line({"delete": document_id})

    def _add_line(self, value: dict[str, object]) -> None:
        import orjson

        self.add_record(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))

    def describe(self) -> str:
        """Return the settings."""
        return f"JSONLinesIndexWriter\n\tpath : {self.path}\n"
