"""The two LMDB environments of a table, opened once per process, and the order of writes to them.

Contents are never changed in place: each has its own number in ``content``, and the row in ``meta`` refers to it. A
flush holds the write lock of ``meta``, commits the new contents first and then everything else. If it is killed in
between, unreferenced contents remain; the next writer finds them by their numbers and deletes them. Contents that a
flush replaces are recorded in ``meta`` and deleted by the next flush, so that readers of the old row can still load
them; a later reader reads the row again.

LMDB needs a write transaction to open a named database. Opening a table therefore waits for a flush in progress (a
second at most); reading never waits.

An environment must not be used across a fork. A fork waits until no thread is in a transaction. The child closes the
inherited environments, which does not affect the parent, and reopens the table when needed.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import lmdb

from nutch2py.errors import StoreError
from nutch2py.support.reporting import capture_reporting, warn
from nutch2py.table.embedded.storage.lmdb_environment import find_write_obstacle, open_environment
from nutch2py.table.embedded.storage.lmdb_errors import translate_errors
from nutch2py.table.embedded.storage.lmdb_pages import PageFile
from nutch2py.table.embedded.storage.resident_pages import PIECE_READS, RUN_READS, MappedFiles

STATE_DATABASE, GARBAGE_DATABASE, SAMPLE_DATABASE = b":state", b":garbage", b":sample"
"""Databases of ``meta`` that are not families: their names start with a colon."""
NEXT_CONTENT = b"next content"
VERSION, SCHEMA = b"version", b"schema"
WAIT_WARNING_DELAY = 3.0
"""Seconds of waiting for another writer before a warning, longer than a usual flush."""
_CONTENT_NUMBER = struct.Struct(">Q")
_open_tables: dict[str, TableFiles] = {}
_environments_lock = threading.RLock()


class TableFiles:
    """The open environments of one table in this process; ``user_count`` stores share them."""

    def __init__(self, path: Path, map_size: int) -> None:
        self.path, self.user_count, self.is_closed, self.has_failed = path, 0, False, False
        self._databases: dict[bytes, lmdb._Database] = {}
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        self.write_obstacle = find_write_obstacle(path / "meta") or find_write_obstacle(path / "content")
        is_read_only = self.write_obstacle is not None
        self.meta = open_environment(path / "meta", map_size, is_read_only=is_read_only)
        try:
            self.content = open_environment(path / "content", map_size, is_read_only=is_read_only)
        except BaseException:
            self.meta.close()
            raise
        self._data_path = str(path / "meta" / "data.mdb")
        self._inode = os.stat(self._data_path).st_ino  # noqa: PTH116  # called for every chunk: Path doubles the cost
        self._mapped_files = MappedFiles([path / part / "data.mdb" for part in ("meta", "content")], _environments_lock)
        self._open_databases()

    def is_usable(self) -> bool:
        """Return whether the environments are open, have not failed, and are still the table's files."""
        if self.is_closed or self.has_failed:
            return False
        try:
            return os.stat(self._data_path).st_ino == self._inode  # noqa: PTH116
        except OSError:
            return False

    def close(self) -> None:
        """Close both environments."""
        if not self.is_closed:
            self.is_closed = True
            self.meta.close()
            self.content.close()

    def database_names(self, txn: lmdb.Transaction[bytes]) -> list[bytes]:
        """Return the names of the databases in ``meta``, in order."""
        return [bytes(name) for name in txn.cursor().iternext(values=False)]

    def _open_databases(self) -> None:
        if self.write_obstacle is not None:
            self._open_databases_readonly()
            return
        with self._write_lock, self._begin_write() as txn:
            self._free_unused_tails()
            opened = {
                n: self.meta.open_db(n, txn=txn, create=False)
                for n in self.database_names(txn)
                if n not in self._databases
            }
        self._databases.update(opened)

    def _open_databases_readonly(self) -> None:
        with self._write_lock:
            with self.meta.begin() as txn:
                names = self.database_names(txn)
            # a handle of a given read transaction would end with it
            self._databases.update((n, self.meta.open_db(n, create=False)) for n in names if n not in self._databases)

    def _free_unused_tails(self) -> None:
        """Truncate both files behind their last page; called with the write lock of ``meta``.

        A commit that a full disk has refused leaves pages behind it. On a full disk, their space is all that there is
        for the end of the job in the job log. No transaction reads them.
        """
        for environment, part in ((self.meta, "meta"), (self.content, "content")):
            data = self.path / part / "data.mdb"
            used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
            if data.stat().st_size > used:
                os.truncate(data, used)

    def current_families(self) -> list[bytes]:
        """Return the databases of families, including those that another process has just created."""
        with self.read_transaction() as txn:
            names = self.database_names(txn)
        if any(name not in self._databases for name in names):
            self._open_databases()
        return [name for name in names if not name.startswith(b":")]

    def known_families(self) -> list[bytes]:
        """Return the databases of families that are open in this process."""
        return [name for name in self._databases if not name.startswith(b":")]

    def database_handle(self, name: bytes) -> lmdb._Database | None:
        """Return the handle of a database, None if it is not open."""
        return self._databases.get(name)

    def get_state(self, txn: lmdb.Transaction[bytes], name: bytes) -> bytes | None:
        """Return the value of ``name`` in the table's state database."""
        handle = self._databases.get(STATE_DATABASE)
        found: bytes | None = txn.get(name, db=handle) if handle is not None else None
        return found

    @contextlib.contextmanager
    def read_transaction(self, read_count: int = RUN_READS) -> Iterator[lmdb.Transaction[bytes]]:
        """Run the block in a read transaction of ``meta``; the threads of a process read one by one.

        ``read_count`` is the expected number of reads, see :mod:`nutch2py.table.embedded.storage.resident_pages`.
        """
        with self._read_lock, self.meta.begin() as txn:
            yield txn
            self._check_unchanged(self.meta, txn)
        self._mapped_files.release_if_many(read_count)

    def _check_unchanged(self, environment: lmdb.Environment, txn: lmdb.Transaction[bytes]) -> None:
        """Raise an error if a table that is read without locks was written meanwhile, by another user or machine.

        A writer does not know of this reader, so the next but one commit may reuse the pages of its snapshot.
        """
        if self.write_obstacle is not None and environment.info()["last_txnid"] != txn.id():
            raise StoreError(
                f"table {self.path.name} in {self.path.parent} was changed while it was read, and this process may not "
                "lock it: run the command again when no job changes the crawl, or as a user who may write there"
            )

    def release_mapped_pages(self) -> None:
        """Release mapped pages above the limit; called within a transaction after each :data:`PIECE_READS` reads."""
        self._mapped_files.release_if_many(PIECE_READS)

    @contextlib.contextmanager
    def pause_transactions(self) -> Iterator[None]:
        """Wait until no thread is in a transaction, and prevent new ones within the block."""
        with self._write_lock, self._read_lock:
            yield

    @contextlib.contextmanager
    def write_transaction(
        self, creates: Sequence[bytes] = ()
    ) -> Iterator[tuple[lmdb.Transaction[bytes], dict[bytes, lmdb._Database]]]:
        """Run the block in the write transaction of ``meta``, with the handles of its databases.

        Databases named in ``creates`` are created. The transaction is committed at the end of the block, and rolled
        back if the block raises. After a failed commit LMDB rejects further writes, so the table is reopened for the
        next.
        """
        if self.write_obstacle is not None:
            raise self.write_obstacle
        with self._write_lock, self._record_failure():
            with self._begin_write() as txn:
                handles = dict(self._databases)
                for name in {*self.database_names(txn), *creates} - handles.keys():
                    handles[name] = self.meta.open_db(name, txn=txn)
                yield txn, handles
            self._databases = handles
        self._mapped_files.release_if_many(RUN_READS)

    def _begin_write(self) -> lmdb.Transaction[bytes]:
        """Begin a write transaction of ``meta``; log a warning if another process holds the lock for long."""
        use_context = capture_reporting()

        def log_wait() -> None:
            use_context()
            where = f"{self.path.name} in {self.path.parent}"
            warn(f"waiting for the table {where}: another process is writing it (dueindex takes long)")

        timer = threading.Timer(WAIT_WARNING_DELAY, log_wait)
        timer.daemon = True
        timer.start()
        try:
            return self.meta.begin(write=True)
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def _record_failure(self) -> Iterator[None]:
        try:
            yield
        except lmdb.Error as error:
            self.has_failed = not isinstance(error, lmdb.MapFullError)
            raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[tuple[PageFile, PageFile]]:
        """Run the block with a snapshot of both files; writers do not reuse its pages meanwhile."""
        with contextlib.ExitStack() as held:
            meta = held.enter_context(PageFile(self.path / "meta" / "data.mdb"))
            content = held.enter_context(PageFile(self.path / "content" / "data.mdb"))
            with self.write_transaction() if self.write_obstacle is None else contextlib.nullcontext():
                for environment, file in ((self.meta, meta), (self.content, content)):
                    held.enter_context(environment.begin())
                    file.select_meta(file.current_meta())
            yield meta, content

    def write_contents(
        self, txn: lmdb.Transaction[bytes], handles: dict[bytes, lmdb._Database], contents: Sequence[bytes]
    ) -> int:
        """Commit ``contents`` and delete unreferenced ones; return the number of the first new content.

        ``txn`` is the write transaction of ``meta``; its lock also excludes other writers of ``content``.
        """
        first = _CONTENT_NUMBER.unpack(txn.get(NEXT_CONTENT, db=handles[STATE_DATABASE]) or bytes(8))[0]
        garbage = [bytes(number) for number in txn.cursor(handles[GARBAGE_DATABASE]).iternext(values=False)]
        if not contents and not garbage:
            return int(first)
        with self.content.begin(write=True) as content_txn:
            for number in garbage:
                content_txn.delete(number)
            cursor = content_txn.cursor()
            if cursor.set_range(_CONTENT_NUMBER.pack(first)):  # contents of a killed writer
                while cursor.delete():
                    pass
            cursor.putmulti(
                [(_CONTENT_NUMBER.pack(first + i), content) for i, content in enumerate(contents)], append=True
            )
        for number in garbage:
            txn.delete(number, db=handles[GARBAGE_DATABASE])
        txn.put(NEXT_CONTENT, _CONTENT_NUMBER.pack(first + len(contents)), db=handles[STATE_DATABASE])
        return int(first)

    def read_contents(self, numbers: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored contents of those ``numbers`` that exist."""
        with self._read_lock, self.content.begin() as txn:
            found = dict(txn.cursor().getmulti(sorted(numbers)))
            self._check_unchanged(self.content, txn)
        self._mapped_files.release_if_many(len(numbers))
        return found


def environments_lock() -> threading.RLock:
    """Return the lock under which environments are opened and closed."""
    return _environments_lock


def acquire(path: Path, map_size: int, where: str) -> TableFiles:
    """Return the environments of the table in ``path``, opened at most once in this process."""
    key = str(path.resolve())
    with _environments_lock, translate_errors(where):
        while True:
            files = _open_tables.get(key)
            if files is not None and not files.is_usable():
                with files.pause_transactions():  # another thread may still be reading
                    files.close()
                files = None
            if files is None:
                files = _open_tables[key] = TableFiles(path, map_size)
            files.user_count += 1
            if not files.is_closed:  # the finalizer of their last user may just have closed them
                return files


def release(files: TableFiles) -> None:
    """Release the environments from :func:`acquire`; the last user closes them."""
    with _environments_lock:
        files.user_count -= 1
        if files.user_count <= 0:
            files.close()
            for key in [key for key, other in _open_tables.items() if other is files]:
                del _open_tables[key]


def discard(path: Path) -> None:
    """Close the environments of a table after its folder was moved; its stores detect this themselves."""
    with _environments_lock:
        files = _open_tables.pop(str(path.resolve()), None)
        if files is not None:
            files.close()


def list_open() -> list[TableFiles]:
    """Return the files of the tables that are open in this process, by path."""
    with _environments_lock:
        return [_open_tables[key] for key in sorted(_open_tables)]


def close_all() -> None:
    """Close all tables that are open in this process, for example between the test modules of one run.

    Stores reopen their files at the next use.
    """
    with _environments_lock:
        for files in _open_tables.values():
            files.close()
        _open_tables.clear()


_fork_pauses = contextlib.ExitStack()


def _before_fork() -> None:
    _environments_lock.acquire()
    for key in sorted(_open_tables):
        _fork_pauses.enter_context(_open_tables[key].pause_transactions())


def _after_fork() -> None:
    _fork_pauses.close()
    _environments_lock.release()


def _after_fork_in_child() -> None:
    _after_fork()
    for inherited in _open_tables.values():
        inherited.close()
    _open_tables.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
