"""FileIndexWriter: what writers whose index is one file have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.index_writers import WriterParameters
from nutch2py.indexer.writers.append_file import AppendFile
from nutch2py.interfaces import IndexWriter
from nutch2py.records.document import NutchDocument

_BATCH_BYTES = 4_000_000


class FileIndexWriter(IndexWriter):
    """Gathers records and appends them to a file, 4 MB at once; see :mod:`nutch2py.indexer.writers.append_file`.

    Every job adds its records, so that a crawl of several rounds has them all; ``index -reindex`` empties the file
    first. ``plugin_id``: prefix of the properties that parameters can be given as.
    """

    plugin_id: str

    def __init__(self, conf: Configuration) -> None:
        self._records: list[bytes] = []
        self._size = 0
        self._configure_file(conf, {})

    def _configure_file(self, conf: Configuration, given_parameters: Mapping[str, str]) -> None:
        path = self.configure(WriterParameters(conf, self.plugin_id, given_parameters))
        self._file = AppendFile(path, conf.get_float("index.lock.timeout", 300.0))

    @abstractmethod
    def configure(self, parameters: WriterParameters) -> Path:
        """Take over the parameters; return the file to write."""

    @abstractmethod
    def describe(self) -> str:
        """Return the settings."""

    @abstractmethod
    def write(self, document: NutchDocument) -> None:
        """Add the record of a document."""

    @abstractmethod
    def delete(self, document_id: str) -> None:
        """Add the record of a delete, where there are such."""

    def header(self) -> bytes:
        """Return what a new file begins with."""
        return b""

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Empty the file when everything is indexed anew."""
        self._configure_file(conf, parameters)
        if reindex:
            self._file.clear()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Take over the parameters; the file is touched by the first batch."""
        self._configure_file(conf, parameters)

    def update(self, document: NutchDocument) -> None:
        """Add the record of a document, as :meth:`write` does."""
        self.write(document)

    def add_record(self, record: bytes) -> None:
        """Gather a record."""
        self._records.append(record)
        self._size += len(record)
        if self._size > _BATCH_BYTES:
            self._flush()

    def commit(self) -> None:
        """Append the gathered records to the file."""
        self._flush()

    def close(self) -> None:
        """Append what is left."""
        self._flush()

    def _flush(self) -> None:
        if self._records:
            self._file.append(b"".join(self._records), self.header())
            self._records, self._size = [], 0
