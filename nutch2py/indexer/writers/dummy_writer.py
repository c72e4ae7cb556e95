"""indexer-dummy: writes down what an index would be told, to see what a job does."""

from __future__ import annotations

from pathlib import Path

from nutch2py.document import NutchDocument
from nutch2py.indexer.index_writers import Parameters
from nutch2py.indexer.writers.file_writer import FileIndexWriter


class DummyIndexWriter(FileIndexWriter):
    """Appends ``add``, ``update`` or ``delete`` with a tab and the id, and ``commit``, a line each, as Nutch 1's does.

    Parameters (index-writers.xml, or properties ``indexer-dummy.NAME``): ``path`` (``dummy-index.txt``), ``delete``
    (write deletes too, false).
    """

    java_class = "org.apache.nutch.indexwriter.dummy.DummyIndexWriter"
    plugin_id = "indexer-dummy"

    def configure(self, parameters: Parameters) -> Path:
        """Take over the parameters."""
        self.path = parameters.get_path("path", "dummy-index.txt")
        self.deletes = parameters.get_bool("delete", False)
        return self.path

    def write(self, document: NutchDocument) -> None:
        """Note an addition."""
        self._note(f"add\t{document.get('id')}")

    def update(self, document: NutchDocument) -> None:
        """Note an update."""
        self._note(f"update\t{document.get('id')}")

    def delete(self, document_id: str) -> None:
        """Note a delete, if deletes are wanted."""
        if self.deletes:
            self._note(f"delete\t{document_id}")

    def commit(self) -> None:
        """Note the commit and write all notes."""
        self._note("commit")
        super().commit()

    def _note(self, line: str) -> None:
        self.add(f"{line}\n".encode("utf-8", "replace"))

    def describe(self) -> str:
        """Return the settings."""
        return f"DummyIndexWriter\n\tpath : {self.path}\n\tdelete : {str(self.deletes).lower()}\n"
