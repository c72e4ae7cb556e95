"""indexer-jsonl: documents as lines of JSON, for whatever reads them next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.indexer.appendfile import AppendFile
from nutch2py.indexer.document import NutchDocument
from nutch2py.indexer.writers import Parameters

_BATCH_BYTES = 4_000_000


class JSONLinesIndexWriter:
    """Appends one JSON object a line to ``path`` (default ``index.jsonl``): a document, or ``{"delete": id}``.

    A field with one value is a text, one with several a list. The file is a log: a later line replaces an earlier one
    of the same id, so replaying it gives the index. Parameter ``path`` (index-writers.xml, or property
    ``indexer-jsonl.path``).
    """

    def __init__(self, conf: Configuration) -> None:
        self._lines: list[bytes] = []
        self._size = 0
        self._configure(conf, {})

    def _configure(self, conf: Configuration, given: Mapping[str, str]) -> None:
        self.path = Path(Parameters(conf, "indexer-jsonl", given).get("path", "index.jsonl").strip())
        self._file = AppendFile(self.path, conf.get_float("index.lock.timeout", 300.0))

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Empty the file when everything is indexed anew."""
        self._configure(conf, parameters)
        if reindex:
            self._file.clear()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Take over the parameters; the file is touched by the first batch."""
        self._configure(conf, parameters)

    def write(self, document: NutchDocument) -> None:
        """Add a line."""
        self._add(document.to_json())

    def update(self, document: NutchDocument) -> None:
        """Add a line, which replaces the one before."""
        self._add(document.to_json())

    def delete(self, document_id: str) -> None:
        """Add the line that says so."""
        self._add({"delete": document_id})

    def _add(self, value: dict[str, Any]) -> None:
        import orjson

        self._lines.append(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
        self._size += len(self._lines[-1])
        if self._size > _BATCH_BYTES:
            self.commit()

    def commit(self) -> None:
        """Append the gathered lines to the file."""
        if self._lines:
            self._file.append(b"".join(self._lines))
            self._lines, self._size = [], 0

    def close(self) -> None:
        """Append what is left."""
        self.commit()

    def describe(self) -> str:
        """Return the settings."""
        return f"JSONLinesIndexWriter\n\tpath : {self.path}\n"
