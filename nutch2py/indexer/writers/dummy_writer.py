"""indexer-dummy: logs the operations that an index would receive."""

from __future__ import annotations

from pathlib import Path

from nutch2py.indexer.index_writers import WriterParameters
from nutch2py.indexer.writers.file_writer import FileIndexWriter
from nutch2py.records.document import NutchDocument


class DummyIndexWriter(FileIndexWriter):
    """Appends a line ``add``, ``update`` or ``delete`` with a tab and the id, or ``commit``, as Nutch 1's does.

    Parameters (index-writers.xml, or properties ``indexer-dummy.NAME``): ``path`` (``dummy-index.txt``), ``delete``
    (write deletes too, false).
    """

    java_class = "org.apache.nutch.indexwriter.dummy.DummyIndexWriter"
    plugin_id = "indexer-dummy"

    def configure(self, parameters: WriterParameters) -> Path:
        """Apply the parameters."""
        self.path = parameters.get_path("path", "dummy-index.txt")
        self.writes_deletes = parameters.get_bool("delete", False)
        return self.path

    def write(self, document: NutchDocument) -> None:
        """Log an addition."""
        self._add_line(f"add\t{document.get('id')}")

    def update(self, document: NutchDocument) -> None:
        """Log an update."""
        self._add_line(f"update\t{document.get('id')}")

    def delete(self, document_id: str) -> None:
        """Log a delete, if deletes are enabled."""
        if self.writes_deletes:
            self._add_line(f"delete\t{document_id}")

    def commit(self) -> None:
        """Log the commit and write all lines."""
        self._add_line("commit")
        super().commit()

    def _add_line(self, line: str) -> None:
        self.add_record(f"{line}\n".encode("utf-8", "replace"))

    def describe(self) -> str:
        """Return the settings."""
        return f"DummyIndexWriter\n\tpath : {self.path}\n\tdelete : {str(self.writes_deletes).lower()}\n"
