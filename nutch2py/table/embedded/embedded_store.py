"""EmbeddedStore: one table in a folder, as a :class:`nutch2py.table.store.DataStore`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self
from weakref import finalize

from nutch2py.cells import encode_text
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.record import Field
from nutch2py.table.due import DueIndex
from nutch2py.table.embedded import checking, files, keeping, layout, schema
from nutch2py.table.embedded.content import Contents
from nutch2py.table.embedded.embedded_batch import EmbeddedBatch, compare_and_set
from nutch2py.table.embedded.embedded_due import EmbeddedDueIndex
from nutch2py.table.embedded.packing import cell_times
from nutch2py.table.embedded.reader import Bounds, read_rows, scan_keys, scan_rows
from nutch2py.table.embedded.selection import CONTENT, Selection
from nutch2py.table.query import KeyRange, Query
from nutch2py.table.store import DataStore, R, RowCells, WriteBatch, check_comparable

_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_FEW_KEYS = 200_000
"""Tables of up to so many rows are split by their keys themselves, larger ones by the sample that writers keep."""


class EmbeddedStore(DataStore[R]):
    """A table under ``folder/name``. Files are opened at first use and shared by the stores of this process.

    Stores may be used by several threads, and after a fork. Reading and writing a table that does not exist raises
    :class:`StoreError`.
    """

    def __init__(self, record: type[R], name: str, folder: Path, location: str, conf: Configuration) -> None:
        super().__init__(record, name, location)
        if not _TABLE_NAME.fullmatch(name) or name.startswith("."):
            raise ConfigurationError(
                f"{name!r} cannot be the name of a table: use letters, digits, '_', '-' and '.' in storage.crawl.id"
            )
        self._path = folder / name
        self._where = f"{name} in {folder}"
        self._map_size = conf.get_int("storage.embedded.map.size", files.DEFAULT_MAP_SIZE)
        self._keeps = record.SCHEMA == "webpage" and conf.get_bool("storage.embedded.due.index", True)
        self._most_rows = conf.get_int("gora.buffer.write.limit", 10_000)
        self._most_bytes = conf.get_int("storage.buffer.write.bytes", 32 << 20)
        self._files: files.TableFiles | None = None
        self._let_go: finalize[[files.TableFiles], Any] | None = None

    @classmethod
    def open(cls, conf: Configuration, record: type[R], table_name: str, path: str) -> Self:
        """Open the table ``table_name`` under the folder ``path`` (``~`` is the home folder); nothing is made yet."""
        if not path:
            raise ConfigurationError("storage.data.store is 'embedded:' without a folder: write embedded:FOLDER")
        folder = conf.absolute(os.path.expandvars(path))
        return cls(record, table_name, folder, f"embedded:{path}", conf)

    def _live(self) -> files.TableFiles:
        """Return the open files of the table; open them anew after a fork, a close, or a drop by another process."""
        found = self._files
        if found is not None and found.alive():
            return found
        with files.opening():
            return self._open_files()

    def _open_files(self) -> files.TableFiles:
        found = self._files
        if found is not None and found.alive():
            return found
        if not self.exists():
            raise StoreError(
                f"there is no table {self._where}: inject seeds first, or correct storage.data.store or -crawlId"
            )
        self.close()
        self._files = found = files.acquire(self._path, self._map_size, self._where)
        self._let_go = finalize(self, files.release, found)  # jobs leave their stores to whoever collects them
        self._let_go.atexit = False
        try:
            with files.explained(self._where), found.reading() as txn:
                version = found.get_state(txn, files.VERSION)
                stored = found.get_state(txn, files.SCHEMA)
            if version is None or stored is None:
                raise StoreError(
                    f"{self._path} is not a table of this program: name another folder in storage.data.store"
                )
            with files.explained(self._where):
                layout.bring_up(found, self._where, version)
                with found.reading() as txn:
                    stored = found.get_state(txn, files.SCHEMA) or b""  # a step may have written another
            schema.check(self._where, self.record.SCHEMA, stored.decode())
        except StoreError:
            self.close()
            raise
        return found

    def exists(self) -> bool:
        """Tell whether the table is there, completely made. One that has lost a file is refused when it is opened."""
        with files.explained(self._where):
            return (self._path / files.READY).is_file()

    def create(self) -> None:
        """Make the table unless it is there; one that another process is making at the same time is shared with it."""
        if self.exists():
            self._live()
            return
        with files.explained(self._where):
            for name in ("meta", "content"):
                (self._path / name).mkdir(parents=True, exist_ok=True)
            with files.making(self._path):
                self._make()

    def _make(self) -> None:
        made = files.acquire(self._path, self._map_size, self._where)
        try:
            families = {field.family for field in self.record.FIELDS.values()}
            if self.record.SCHEMA in CONTENT:
                families.add(b":".join(CONTENT[self.record.SCHEMA]))
            own = {files.STATE, files.GARBAGE, files.SAMPLE, *((keeping.DUE, keeping.FIGURES) if self._keeps else ())}
            with made.writing((*own, *families)) as (txn, handles):
                state = handles[files.STATE]
                new = txn.put(files.VERSION, str(layout.LAYOUT).encode(), db=state, overwrite=False)
                if new and self._keeps:
                    keeping.stamp(txn, handles)
                txn.put(files.SCHEMA, schema.schema_text(self.record.SCHEMA).encode(), db=state, overwrite=False)
            (self._path / files.READY).touch()
        finally:
            files.release(made)

    def drop(self) -> None:
        """Delete the table and its files; waits for a flush in progress, other processes then find no table."""
        if not self._path.exists():
            return
        with files.explained(self._where):
            doomed = self._path.with_name(f".{self._path.name}.dropped-{os.getpid()}")
            shutil.rmtree(doomed, ignore_errors=True)
            if self._opens():
                with self._live().writing():  # no other process is within a flush
                    self._path.rename(doomed)
                files.discard(self._path)
            else:
                self._path.rename(doomed)
            self.close()
            shutil.rmtree(doomed)

    def _opens(self) -> bool:
        """Tell whether the table can be opened; one that is damaged can be dropped nevertheless."""
        try:
            return self.exists() and bool(self._live())
        except StoreError:
            return False

    def check(self, note: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Look through the files page by page, with checksums; give every row, and tell ``note`` what is damaged.

        Jobs may go on meanwhile. What they free is not used again before the end.
        """
        with files.explained(self._where):
            yield from checking.check(self._path, self._safely_live, note)

    def salvage(self, note: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Give what can be read of a table that is damaged; ``note`` is told what cannot. Jobs must rest."""
        if not self.exists():
            raise StoreError(f"there is no table {self._where}: correct storage.data.store or -crawlId")
        with files.explained(self._where):
            yield from checking.salvage(self._path, note)

    def _safely_live(self) -> files.TableFiles:
        with files.explained(self._where):
            return self._live()

    def close(self) -> None:
        """Give back the files; the last store of this process that uses them closes them."""
        self._files = None
        if self._let_go is not None:
            self._let_go()  # once: called again, it does nothing

    def _select(self, fields: Iterable[Field[Any]] | None) -> Selection:
        with files.explained(self._where):
            table = self._live()
            if fields is not None:
                selection = Selection(self.record.SCHEMA, fields, table.known(), self._where)
                if not selection.absent:
                    return selection
            return Selection(self.record.SCHEMA, fields, table.families(), self._where)

    def scan(self, query: Query) -> Iterator[tuple[str, R]]:
        """Yield rows in key order, read in chunks; each row is as it was at one moment.

        With no fields and a mark the rows have no cells.
        """
        selection = self._select(query.fields)
        fields, record = query.fields, self.record
        with files.explained(self._where):
            for key, row in scan_rows(self._live, selection, query.range, query.mark):
                yield key.decode("utf-8", "replace"), record(None, fields, selection, row)

    def keys(self, key_range: KeyRange) -> Iterator[str]:
        """Yield the row keys of a range; nothing else is read."""
        with files.explained(self._where):
            for key in scan_keys(self._live, key_range):
                yield key.decode("utf-8", "replace")

    def get_many(self, keys: Sequence[str], fields: Iterable[Field[Any]] | None = None) -> list[R | None]:
        """Return the rows of ``keys``, read in key order inside; contents of all of them are in memory at once."""
        wanted = None if fields is None else frozenset(fields)
        selection = self._select(wanted)
        coded = [encode_text(key) for key in keys]
        if not selection.names:
            return [None] * len(coded)
        with files.explained(self._where):
            rows = read_rows(self._live(), selection, coded)
        record, get = self.record, rows.get
        return [record(None, wanted, selection, row) if (row := get(key)) is not None else None for key in coded]

    def key_ranges(self, query: Query, count: int) -> list[KeyRange]:
        """Split at quantiles of the keys, or of a sample of them in a large table."""
        keys = self._sampled_keys(query.range)
        cuts = [keys[len(keys) * part // count].decode("utf-8", "ignore") for part in range(1, count)] if keys else []
        inner = sorted({cut for cut in cuts if cut > query.range.start})
        return [KeyRange(*ends) for ends in pairwise([query.range.start, *inner, query.range.stop])]

    def _sampled_keys(self, key_range: KeyRange) -> list[bytes]:
        """Return keys of the range in order: all of them in a small table, else one in 256."""
        bounds = Bounds(key_range)
        with files.explained(self._where):
            table = self._live()
            names = table.families()
            with table.reading() as txn:
                sizes = {name: txn.stat(table.database(name))["entries"] for name in names}
                largest = max(sizes, key=lambda name: sizes[name])
                name = largest if sizes[largest] <= _FEW_KEYS else files.SAMPLE
                cursor = txn.cursor(table.database(name))
                found: list[bytes] = []
                if cursor.set_range(bounds.first) if bounds.first else cursor.first():
                    for key in cursor.iternext(values=False):
                        if bounds.end and key >= bounds.end:
                            break
                        found.append(key)
                return found

    def row_estimate(self) -> int | None:
        """Return the entries of the largest family, None when there is no table."""
        if not self.exists():
            return None
        with files.explained(self._where):
            table = self._live()
            names = table.families()
            with table.reading() as txn:
                return max((int(txn.stat(table.database(name))["entries"]) for name in names), default=0)

    def batch(self, before: Callable[[], object] | None = None) -> WriteBatch:
        """Return writes flushed at ``gora.buffer.write.limit`` rows or ``storage.buffer.write.bytes`` bytes."""
        batch = EmbeddedBatch(
            self._live, self.record.SCHEMA, self._where, self._most_rows, self._most_bytes, self.clock, self._keeps
        )
        batch.before = before
        return batch

    def due_index(self) -> DueIndex:
        """Return the index that lies beside the rows, for a table of pages."""
        if not self._keeps:
            return DueIndex("storage.embedded.due.index is false")
        return EmbeddedDueIndex(self._live, self._where)

    def compare_and_set(self, key: str, field: Field[Any], expected: bytes | None, new: bytes | None) -> bool:
        """Set one cell if it holds ``expected``, under the write lock of the table."""
        check_comparable(field, expected, new)
        place = field.family, field.qualifier
        return compare_and_set(self._live(), self._where, place, key, expected, new)

    def scan_cells(self, key_range: KeyRange = KeyRange()) -> Iterator[tuple[str, RowCells]]:  # noqa: B008
        """Yield every cell with its timestamp, in key order."""
        selection = self._select(None)
        with files.explained(self._where):
            for key, row in scan_rows(self._live, selection, key_range):
                cells: RowCells = {}
                for name, value in zip(selection.names, row, strict=True):
                    if value is None:
                        continue
                    if isinstance(value, Contents):
                        entries = {q: (value[q], time) for q, (_, time) in cell_times(value.packed).items()}
                    else:
                        entries = cell_times(value)
                    family = name.partition(b":")[0]
                    cells[family] = {**cells[family], **entries} if family in cells else entries
                yield key.decode("utf-8", "replace"), cells
