"""FileIndexWriter: base class of index writers that append to one file."""

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
    """Collects records and appends them to a file, 4 MB at once; see :mod:`nutch2py.indexer.writers.append_file`.

    Every job appends its records, so that the file has those of all rounds of a crawl; ``index -reindex`` empties it
    first. ``plugin_id``: prefix of properties that set parameters.
    """

    plugin_id: str

    def __init__(self, conf: Configuration) -> None:
        self._records: list[bytes] = []
        self._size = 0
        self._configure_file(conf, {})

    def _configure_file(self, conf: Configuration, writer_parameters: Mapping[str, str]) -> None:
        path = self.configure(WriterParameters(conf, self.plugin_id, writer_parameters))
        self._file = AppendFile(path, conf.get_float("index.lock.timeout", 300.0))

    @abstractmethod
    def configure(self, parameters: WriterParameters) -> Path:
        """Apply the parameters; return the file to write."""

    @abstractmethod
    def describe(self) -> str:
        """Return the settings."""

    @abstractmethod
    def write(self, document: NutchDocument) -> None:
        """Add the record of a document."""

    @abstractmethod
    def delete(self, document_id: str) -> None:
        """Add the record of a delete, if the format has one."""

    def header(self) -> bytes:
        """Return the header of a new file."""
        return b""

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Empty the file when all documents are indexed again."""
        self._configure_file(conf, parameters)
        if reindex:
            self._file.clear()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Apply the parameters; the first batch opens the file."""
        self._configure_file(conf, parameters)

    def update(self, document: NutchDocument) -> None:
        """Add the record of a document, as :meth:`write` does."""
        self.write(document)

    def add_record(self, record: bytes) -> None:
        """Add a record to the batch."""
        self._records.append(record)
        self._size += len(record)
        if self._size > _BATCH_BYTES:
            self._flush()

    def commit(self) -> None:
        """Append the batch to the file."""
        self._flush()

    def close(self) -> None:
        """Append the rest of the batch."""
        self._flush()

    def _flush(self) -> None:
        if self._records:
            self._file.append(b"".join(self._records), self.header())
            self._records, self._size = [], 0
