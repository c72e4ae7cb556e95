"""EmbeddedStore: a :class:`nutch2py.table.data_store.DataStore` in a local folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self
from weakref import finalize

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import RecordField
from nutch2py.table.data_store import DataStore, R, RowCells, WriteBatch, check_comparable, table_name_error
from nutch2py.table.due_index import DueIndex
from nutch2py.table.embedded import embedded_due_update, fsck
from nutch2py.table.embedded.blobs import LoadedContents
from nutch2py.table.embedded.database_selection import CONTENT_COLUMNS, DatabaseSelection
from nutch2py.table.embedded.embedded_batch import EmbeddedBatch, compare_and_set
from nutch2py.table.embedded.embedded_due_index import EmbeddedDueIndex
from nutch2py.table.embedded.row_reader import KeyBounds, read_rows, scan_keys, scan_rows
from nutch2py.table.embedded.storage import avro_schema, lmdb_environment, lmdb_errors, migrations, table_files
from nutch2py.table.embedded.storage.packing import unpack_cells
from nutch2py.table.table_query import KeyRange, TableQuery

_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
SMALL_TABLE_ROWS = 200_000
"""Tables with up to this many rows are split by their keys, larger ones by the sample that writers maintain."""


class EmbeddedStore(DataStore[R]):
    """A table in ``directory/name``. Files are opened on first use and shared by the stores of this process.

    Stores are thread-safe, and can be used after a fork. Reading and writing a table that does not exist raises
    :class:`StoreError`.
    """

    def __init__(self, record: type[R], name: str, directory: Path, location: str, conf: Configuration) -> None:
        super().__init__(record, name, location)
        if not _TABLE_NAME.fullmatch(name) or name.startswith("."):
            raise table_name_error(name)
        self._path = directory / name
        self._where = f"{name} in {directory}"
        self._map_size = conf.get_int("storage.embedded.map.size", lmdb_environment.DEFAULT_MAP_SIZE)
        self._keeps_due_index = record.SCHEMA == "webpage" and conf.get_bool("storage.embedded.due.index", True)
        self._max_rows = conf.get_int("gora.buffer.write.limit", 10_000)
        self._max_bytes = conf.get_int("storage.buffer.write.bytes", 32 << 20)
        self._files: table_files.TableFiles | None = None
        self._finalizer: finalize[[table_files.TableFiles], object] | None = None

    @classmethod
    def open(cls, conf: Configuration, record: type[R], table_name: str, path: str) -> Self:
        """Open the table ``table_name`` in the folder ``path`` (``~`` is the home folder); nothing is created yet."""
        if not path:
            raise ConfigurationError("storage.data.store is 'embedded:' without a folder: write embedded:FOLDER")
        folder = conf.absolute(os.path.expandvars(path))
        return cls(record, table_name, folder, f"embedded:{path}", conf)

    def get_files(self) -> table_files.TableFiles:
        """Return the open files of the table; reopen them after a fork, a close, or a drop by another process.

        For checks and repairs of the files themselves; a change of theirs bypasses the checks of this class.
        """
        found = self._files
        if found is not None and found.is_usable():
            return found
        with table_files.environments_lock():
            return self._open_files()

    def _open_files(self) -> table_files.TableFiles:
        found = self._files
        if found is not None and found.is_usable():
            return found
        if not self.exists():
            raise StoreError(
                f"there is no table {self._where}: run nutch2py crawl or inject first, "
                "or correct storage.data.store or -crawlId"
            )
        self.close()
        self._files = found = table_files.acquire(self._path, self._map_size, self._where)
        self._finalizer = finalize(self, table_files.release, found)  # jobs do not close their stores
        self._finalizer.atexit = False
        try:
            with lmdb_errors.translate_errors(self._where), found.read_transaction() as txn:
                version = found.get_state(txn, table_files.VERSION)
                stored = found.get_state(txn, table_files.SCHEMA)
            if version is None or stored is None:
                raise StoreError(f"{self._path} is not a table of nutch2py: name another folder in storage.data.store")
            with lmdb_errors.translate_errors(self._where):
                migrations.migrate(found, self._where, version)
                with found.read_transaction() as txn:
                    stored = found.get_state(txn, table_files.SCHEMA) or b""  # a migration may have changed it
            avro_schema.check_schema(self._where, self.record_class.SCHEMA, stored.decode())
        except StoreError:
            self.close()
            raise
        return found

    def exists(self) -> bool:
        """Return whether the table was completely created. One with a missing file is rejected when it is opened."""
        with lmdb_errors.translate_errors(self._where):
            return (self._path / lmdb_environment.READY_FILE).is_file()

    def create(self) -> None:
        """Create the table unless it exists; concurrent creations by several processes yield one table."""
        if self.exists():
            self.get_files()
            return
        with lmdb_errors.translate_errors(self._where):
            for name in ("meta", "content"):
                (self._path / name).mkdir(parents=True, exist_ok=True)
            with lmdb_environment.creation_lock(self._path):
                self._create_files()

    def _create_files(self) -> None:
        made = table_files.acquire(self._path, self._map_size, self._where)
        try:
            families = {field.family for field in self.record_class.FIELDS.values()}
            if self.record_class.SCHEMA in CONTENT_COLUMNS:
                families.add(b":".join(CONTENT_COLUMNS[self.record_class.SCHEMA]))
            own = {
                table_files.STATE_DATABASE,
                table_files.GARBAGE_DATABASE,
                table_files.SAMPLE_DATABASE,
                *(
                    (embedded_due_update.DUE_DATABASE, embedded_due_update.STATISTICS_DATABASE)
                    if self._keeps_due_index
                    else ()
                ),
            }
            with made.write_transaction((*own, *families)) as (txn, handles):
                state = handles[table_files.STATE_DATABASE]
                new = txn.put(table_files.VERSION, str(migrations.LAYOUT_VERSION).encode(), db=state, overwrite=False)
                if new and self._keeps_due_index:
                    embedded_due_update.record_commit(txn, handles)
                txn.put(
                    table_files.SCHEMA,
                    avro_schema.schema_text(self.record_class.SCHEMA).encode(),
                    db=state,
                    overwrite=False,
                )
            (self._path / lmdb_environment.READY_FILE).touch()
        finally:
            table_files.release(made)

    def drop(self) -> None:
        """Delete the table and its files, after a flush in progress."""
        if not self._path.exists():
            return
        with lmdb_errors.translate_errors(self._where):
            doomed = self._path.with_name(f".{self._path.name}.dropped-{os.getpid()}")
            shutil.rmtree(doomed, ignore_errors=True)
            if self._can_open():
                with self.get_files().write_transaction():  # waits for the flush of another process
                    self._path.rename(doomed)
                table_files.discard(self._path)
            else:
                self._path.rename(doomed)
            self.close()
            shutil.rmtree(doomed)

    def _can_open(self) -> bool:
        """Return whether the table can be opened; drop also deletes damaged tables."""
        try:
            return self.exists() and bool(self.get_files())
        except StoreError:
            return False

    def check(self, report: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Check the files page by page, with checksums; yield every row, and pass each problem to ``report``.

        Jobs may run meanwhile; pages that they free are not reused before the end.
        """
        with lmdb_errors.translate_errors(self._where):
            yield from fsck.check_table(self._path, self._get_files_translated, report)

    def salvage(self, report: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Yield the readable rows of a damaged table, and pass each problem to ``report``. No job may run meanwhile."""
        if not self.exists():
            raise StoreError(f"there is no table {self._where}: correct storage.data.store or -crawlId")
        with lmdb_errors.translate_errors(self._where):
            yield from fsck.salvage_table(self._path, report)

    def _get_files_translated(self) -> table_files.TableFiles:
        with lmdb_errors.translate_errors(self._where):
            return self.get_files()

    def close(self) -> None:
        """Release the files; the last store of this process that uses them closes them."""
        self._files = None
        if self._finalizer is not None:
            self._finalizer()  # a second call does nothing

    def _select_databases(self, fields: Iterable[RecordField] | None) -> DatabaseSelection:
        with lmdb_errors.translate_errors(self._where):
            table = self.get_files()
            if fields is not None:
                selection = DatabaseSelection(self.record_class.SCHEMA, fields, table.known_families(), self._where)
                if not selection.missing_databases:
                    return selection
            return DatabaseSelection(self.record_class.SCHEMA, fields, table.current_families(), self._where)

    def scan(self, query: TableQuery) -> Iterator[tuple[str, R]]:
        """Yield rows in key order, read in chunks; each row is consistent.

        With empty fields and a mark the rows have no cells.
        """
        selection = self._select_databases(query.fields)
        fields, record = query.fields, self.record_class
        with lmdb_errors.translate_errors(self._where):
            for key, row in scan_rows(self.get_files, selection, query.range, query.mark):
                yield key.decode("utf-8", "replace"), record(None, fields, selection, row)

    def keys(self, key_range: KeyRange) -> Iterator[str]:
        """Yield the row keys of a range without reading cells."""
        with lmdb_errors.translate_errors(self._where):
            for key in scan_keys(self.get_files, key_range):
                yield key.decode("utf-8", "replace")

    def get_many(self, keys: Sequence[str], fields: Iterable[RecordField] | None = None) -> list[R | None]:
        """Return the rows of ``keys``, read in key order; the contents of all rows are in memory at once."""
        wanted = None if fields is None else frozenset(fields)
        selection = self._select_databases(wanted)
        coded = [encode_text(key) for key in keys]
        if not selection.database_names:
            return [None] * len(coded)
        with lmdb_errors.translate_errors(self._where):
            rows = read_rows(self.get_files(), selection, coded)
        record, get = self.record_class, rows.get
        return [record(None, wanted, selection, row) if (row := get(key)) is not None else None for key in coded]

    def key_ranges(self, query: TableQuery, count: int) -> list[KeyRange]:
        """Split at quantiles of the keys, or of a key sample in a large table."""
        keys = self._sample_keys(query.range)
        cuts = [keys[len(keys) * part // count].decode("utf-8", "ignore") for part in range(1, count)] if keys else []
        inner = sorted({cut for cut in cuts if cut > query.range.start})
        return [KeyRange(*ends) for ends in pairwise([query.range.start, *inner, query.range.stop])]

    def _sample_keys(self, key_range: KeyRange) -> list[bytes]:
        """Return keys of the range in order: all of them in a small table, else one in 256."""
        bounds = KeyBounds(key_range)
        with lmdb_errors.translate_errors(self._where):
            table = self.get_files()
            names = table.current_families()
            with table.read_transaction() as txn:
                sizes = {name: txn.stat(table.database_handle(name))["entries"] for name in names}
                largest = max(sizes, key=lambda name: sizes[name])
                name = largest if sizes[largest] <= SMALL_TABLE_ROWS else table_files.SAMPLE_DATABASE
                cursor = txn.cursor(table.database_handle(name))
                found: list[bytes] = []
                if cursor.set_range(bounds.first_key) if bounds.first_key else cursor.first():
                    for key in cursor.iternext(values=False):
                        if bounds.end_key and key >= bounds.end_key:
                            break
                        found.append(key)
                return found

    def row_estimate(self) -> int | None:
        """Return the number of entries of the largest family, None if the table does not exist."""
        if not self.exists():
            return None
        with lmdb_errors.translate_errors(self._where):
            table = self.get_files()
            names = table.current_families()
            with table.read_transaction() as txn:
                return max((int(txn.stat(table.database_handle(name))["entries"]) for name in names), default=0)

    def batch(self, before_flush: Callable[[], object] | None = None) -> WriteBatch:
        """Return a batch that flushes at ``gora.buffer.write.limit`` rows or ``storage.buffer.write.bytes`` bytes."""
        batch = EmbeddedBatch(
            self.get_files,
            self.record_class.SCHEMA,
            self._where,
            self._max_rows,
            self._max_bytes,
            self.clock,
            self._keeps_due_index,
        )
        batch.before_flush = before_flush
        return batch

    def due_index(self) -> DueIndex:
        """Return the due index of a table of pages."""
        if not self._keeps_due_index:
            return DueIndex("storage.embedded.due.index is false")
        return EmbeddedDueIndex(self.get_files, self._where)

    def compare_and_set(self, key: str, field: RecordField, expected: bytes | None, new: bytes | None) -> bool:
        """Set one cell if it holds ``expected``, under the write lock of the table."""
        check_comparable(field, expected, new)
        column = field.family, field.qualifier
        return compare_and_set(self.get_files(), self._where, column, key, expected, new)

    def scan_cells(self, key_range: KeyRange = KeyRange()) -> Iterator[tuple[str, RowCells]]:  # noqa: B008
        """Yield every cell with its timestamp, in key order."""
        selection = self._select_databases(None)
        with lmdb_errors.translate_errors(self._where):
            for key, row in scan_rows(self.get_files, selection, key_range):
                cells: RowCells = {}
                for name, value in zip(selection.database_names, row, strict=True):
                    if value is None:
                        continue
                    if isinstance(value, LoadedContents):
                        entries = {q: (value[q], time) for q, (_, time) in unpack_cells(value.packed).items()}
                    else:
                        entries = unpack_cells(value)
                    family = name.partition(b":")[0]
                    cells[family] = {**cells[family], **entries} if family in cells else entries
                yield key.decode("utf-8", "replace"), cells
