"""indexer-dummy: writes down what an index would be told, to see what a job does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.indexer.appendfile import AppendFile
from nutch2py.indexer.document import NutchDocument
from nutch2py.indexer.writers import Parameters


class DummyIndexWriter:
    """Appends ``add``, ``update`` or ``delete`` with a tab and the id, and ``commit``, a line each, as Nutch 1's does.

    Parameters (index-writers.xml, or properties ``indexer-dummy.NAME``): ``path`` (``dummy-index.txt``), ``delete``
    (write deletes too, false).
    """

    java_class = "org.apache.nutch.indexwriter.dummy.DummyIndexWriter"

    def __init__(self, conf: Configuration) -> None:
        self._lines: list[str] = []
        self._configure(conf, {})

    def _configure(self, conf: Configuration, given: Mapping[str, str]) -> None:
        parameters = Parameters(conf, "indexer-dummy", given)
        self.path = Path(parameters.get("path", "dummy-index.txt").strip())
        self.deletes = parameters.get_bool("delete", False)
        self._file = AppendFile(self.path, conf.get_float("index.lock.timeout", 300.0))

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Empty the file when everything is indexed anew."""
        self._configure(conf, parameters)
        if reindex:
            self._file.clear()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Take over the parameters."""
        self._configure(conf, parameters)

    def write(self, document: NutchDocument) -> None:
        """Note an addition."""
        self._lines.append(f"add\t{document.get('id')}\n")

    def update(self, document: NutchDocument) -> None:
        """Note an update."""
        self._lines.append(f"update\t{document.get('id')}\n")

    def delete(self, document_id: str) -> None:
        """Note a delete, if deletes are wanted."""
        if self.deletes:
            self._lines.append(f"delete\t{document_id}\n")

    def commit(self) -> None:
        """Note the commit and write all notes."""
        self._lines.append("commit\n")
        self._flush()

    def close(self) -> None:
        """Write the notes that are left."""
        self._flush()

    def _flush(self) -> None:
        if self._lines:
            self._file.append("".join(self._lines).encode("utf-8", "replace"))
            self._lines = []

    def describe(self) -> str:
        """Return the settings."""
        return f"DummyIndexWriter\n\tpath : {self.path}\n\tdelete : {str(self.deletes).lower()}\n"
