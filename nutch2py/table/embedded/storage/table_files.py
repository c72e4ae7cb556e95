"""The two LMDB environments of a table, opened once per process, and the order in which they are written.

A content is never changed in place: it gets a number of its own in ``content``, and the row in ``meta`` refers to it. A
flush holds the write lock of ``meta``, commits the new contents first and then everything else. Killed between the two,
it leaves contents of which no row knows; the next writer finds them by their numbers and deletes them. Contents that a
flush replaced are noted in ``meta`` and deleted by the next one, so a reader who still sees the old row can find them;
one who comes too late for that reads the row again.

LMDB needs a write transaction to open a named database. So opening a table waits for a flush in progress (a second at
most); reading never waits.

An environment must not be used across a fork. A fork waits until no thread is inside a transaction; the child then
closes what it inherited, which touches nothing of the parent's, and opens the table anew when it needs it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lmdb

from nutch2py.errors import PermissionDeniedError, StoreError
from nutch2py.support.reporting import capture_reporting, warn
from nutch2py.table.embedded.storage.lmdb_pages import DamagedFileError, PageFile, check_complete
from nutch2py.table.embedded.storage.mapped_memory import PIECE_READS, RUN_READS, MappedFiles
from nutch2py.table.embedded.storage.packing import DamagedCellsError

STATE_DATABASE, GARBAGE_DATABASE, SAMPLE_DATABASE = b":state", b":garbage", b":sample"
"""Databases of ``meta`` that hold no family (a family's name has no colon; that of a content column has one inside)."""
NEXT_CONTENT = b"next content"
VERSION, SCHEMA = b"version", b"schema"
READY_FILE = "ready"
"""A file in a table's folder that says that the table was completely made."""
DEFAULT_MAP_SIZE = 1 << 40
_MAX_DATABASES, _MAX_READERS = 512, 512
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT})
_READ_ONLY_HINT = "its file system is read-only: see why (dmesg), and mount it for writing (reading needs that, too)"
"""LMDB calls a write that was cut short, as on a disk that fills up, an input/output error."""
_WAIT_WARNING_DELAY = 3.0  # seconds that a flush of another process hardly ever takes
_CONTENT_NUMBER = struct.Struct(">Q")
_REPAIR_HINT = (
    "restore it, or save what can be read (exporttable -salvage FILE) and import that into a table in another folder "
    "of storage.data.store"
)
_open_tables: dict[str, TableFiles] = {}
_environments_lock = threading.RLock()


@contextlib.contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Turn LMDB's errors and the system's into :class:`StoreError` with cause and repair."""
    try:
        yield
    except lmdb.MapFullError as error:
        raise StoreError(
            f"table {where} has reached storage.embedded.map.size: raise it; nothing of this group was written"
        ) from error
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError) as error:
        raise StoreError(f"{where} holds a file that is not a sound table ({error}): {_REPAIR_HINT}") from error
    except DamagedFileError as error:
        raise StoreError(f"{where} holds a file that is not a sound table: {error}; {_REPAIR_HINT}") from error
    except DamagedCellsError as error:
        raise damaged_table_error(where, error) from error
    except (lmdb.VersionMismatchError, lmdb.IncompatibleError) as error:
        raise StoreError(
            f"{where} was made by another version of LMDB ({error}): export it there, import it here"
        ) from error
    except lmdb.MemoryError as error:
        raise StoreError(
            f"no address space for {where}: lower storage.embedded.map.size, or raise this user's limit (ulimit -v)"
        ) from error
    except lmdb.ReadersFullError as error:
        raise StoreError(f"{where} is open in more than {_MAX_READERS} readers: run fewer tasks at once") from error
    except lmdb.MapResizedError as error:
        raise StoreError(
            f"{where} has outgrown storage.embedded.map.size of this process: give all processes the same value"
        ) from error
    except (lmdb.ReadonlyError, lmdb.LockError, PermissionError) as error:
        raise PermissionDeniedError(
            f"cannot read and write in {where} ({error}): give this user the right to both (reading needs to write, "
            "too, for the lock file)"
        ) from error
    except (lmdb.Error, OSError) as error:
        number = error.errno if isinstance(error, OSError) else error.code  # LMDB's own are negative
        if number == errno.EROFS:
            raise StoreError(f"cannot write in {where}: {_READ_ONLY_HINT}") from error
        if isinstance(error, lmdb.DiskError) or number in _DISK_ERRORS:
            raise StoreError(
                f"no space left for {where}, or its disk fails ({error}): free some space; nothing of this group was "
                "written"
            ) from error
        if isinstance(error, OSError):  # nothing is there, a file is, or its name is too long
            raise StoreError(
                f"cannot open {where} ({error.strerror or error}): see that its folder is one or can be made, or name "
                "another in storage.data.store"
            ) from error
        raise StoreError(f"the table {where} fails: {error}") from error


def damaged_table_error(where: str, error: DamagedCellsError) -> StoreError:
    """Return the error for cells that are not what was written."""
    return StoreError(f"{where} is damaged: {error}; checktable says where; {_REPAIR_HINT}")


@contextlib.contextmanager
def creation_lock(path: Path) -> Iterator[None]:
    """Let no other process make the same table within the block; first take away what a full disk has left half made.

    LMDB writes the first two pages of a file at once. A file that is shorter holds nothing, and LMDB would refuse it
    for ever.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not (path / READY_FILE).exists():
            for data in path.glob("*/data.mdb"):
                if data.stat().st_size < 2 * mmap.PAGESIZE:
                    data.unlink()
        yield
    finally:
        os.close(folder)


def _open_environment(path: Path, map_size: int) -> lmdb.Environment:
    """Open an LMDB environment; free the slots of readers that died. Commits are synchronous, readahead would hurt.

    A file that was cut is refused: LMDB would map it, and die of SIGBUS where it ends.
    """
    if (path.parent / READY_FILE).exists():
        data = path / "data.mdb"
        try:
            check_complete(data)
        except FileNotFoundError:
            raise DamagedFileError(f"{data} is missing") from None
        except DamagedFileError as error:
            raise DamagedFileError(f"{data}: {error}") from error
    environment = lmdb.open(
        str(path),
        map_size=map_size,
        max_dbs=_MAX_DATABASES,
        max_readers=_MAX_READERS,
        readahead=False,
        max_spare_txns=0,  # one kept for reuse would be freed by a forked child
    )
    environment.reader_check()
    return environment


class TableFiles:
    """The open environments of one table in this process. ``user_count``: stores that share them."""

    def __init__(self, path: Path, map_size: int) -> None:
        self.path, self.user_count, self.is_closed, self.has_failed = path, 0, False, False
        self._databases: dict[bytes, Any] = {}
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        self.meta = _open_environment(path / "meta", map_size)
        try:
            self.content = _open_environment(path / "content", map_size)
        except BaseException:
            self.meta.close()
            raise
        self._data_path = str(path / "meta" / "data.mdb")
        self._inode = os.stat(self._data_path).st_ino  # noqa: PTH116  # asked for every chunk and get: a Path costs twice
        self._mapped_files = MappedFiles([path / part / "data.mdb" for part in ("meta", "content")], _environments_lock)
        self._open_databases()

    def is_usable(self) -> bool:
        """Tell whether these are open, fit for use, and still the table's files."""
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

    def database_names(self, txn: Any) -> list[bytes]:
        """Return the names of the databases in ``meta``, in order."""
        return [bytes(name) for name in txn.cursor().iternext(values=False)]

    def _open_databases(self) -> None:
        with self._write_lock, self._begin_write() as txn:
            opened = {
                n: self.meta.open_db(n, txn=txn, create=False)
                for n in self.database_names(txn)
                if n not in self._databases
            }
        self._databases.update(opened)

    def current_families(self) -> list[bytes]:
        """Return the databases that hold cells, those that another process has just made included."""
        with self.read_transaction() as txn:
            names = self.database_names(txn)
        if any(name not in self._databases for name in names):
            self._open_databases()
        return [name for name in names if not name.startswith(b":")]

    def known_families(self) -> list[bytes]:
        """Return the databases that hold cells and were there when this was last looked at."""
        return [name for name in self._databases if not name.startswith(b":")]

    def database_handle(self, name: bytes) -> Any | None:
        """Return the handle of a database that exists, else None."""
        return self._databases.get(name)

    def get_state(self, txn: Any, name: bytes) -> bytes | None:
        """Return what the table says of itself under ``name``."""
        handle = self._databases.get(STATE_DATABASE)
        found: bytes | None = txn.get(name, db=handle) if handle is not None else None
        return found

    @contextlib.contextmanager
    def read_transaction(self, read_count: int = RUN_READS) -> Iterator[Any]:
        """Give a read transaction of ``meta``, for so many ``read_count``; one thread of a process reads at a time."""
        with self._read_lock, self.meta.begin() as txn:
            yield txn
        self._mapped_files.release_if_many(read_count)

    def release_mapped_pages(self) -> None:
        """Let go of what is mapped when it is much; called within a transaction, after each :data:`PIECE_READS`."""
        self._mapped_files.release_if_many(PIECE_READS)

    @contextlib.contextmanager
    def pause_transactions(self) -> Iterator[None]:
        """Wait until no thread is inside a transaction, and let none begin one."""
        with self._write_lock, self._read_lock:
            yield

    @contextlib.contextmanager
    def write_transaction(self, creates: Sequence[bytes] = ()) -> Iterator[tuple[Any, dict[bytes, Any]]]:
        """Give the write transaction of ``meta`` and the handles of its databases; those of ``creates`` are made.

        Commits at the end of the block, and leaves everything as it was when the block raises. LMDB takes nothing more
        when the disk has refused the end of a commit: then the table is opened anew for the next one.
        """
        with self._write_lock, self._record_failure():
            with self._begin_write() as txn:
                handles = dict(self._databases)
                for name in {*self.database_names(txn), *creates} - handles.keys():
                    handles[name] = self.meta.open_db(name, txn=txn)
                yield txn, handles
            self._databases = handles
        self._mapped_files.release_if_many(RUN_READS)

    def _begin_write(self) -> Any:
        """Begin a write transaction of ``meta``; say so when another process is long about its own."""
        use_context = capture_reporting()

        def say() -> None:
            use_context()
            where = f"{self.path.name} in {self.path.parent}"
            warn(f"waiting for the table {where}, which another process is writing (a dueindex takes long)")

        timer = threading.Timer(_WAIT_WARNING_DELAY, say)
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
        """Give the pages of both files as they are now; until the end no writer uses a page of them again."""
        with contextlib.ExitStack() as held:
            meta = held.enter_context(PageFile(self.path / "meta" / "data.mdb"))
            content = held.enter_context(PageFile(self.path / "content" / "data.mdb"))
            with self.write_transaction():
                for environment, file in ((self.meta, meta), (self.content, content)):
                    held.enter_context(environment.begin())
                    file.select_meta(file.current_meta())
            yield meta, content

    def write_contents(self, txn: Any, handles: dict[bytes, Any], contents: Sequence[bytes]) -> int:
        """Commit ``contents`` and delete what no row refers to; return the number of the first one.

        ``txn`` is the write transaction of ``meta``, whose lock keeps other writers away from ``content``, too.
        """
        first = _CONTENT_NUMBER.unpack(txn.get(NEXT_CONTENT, db=handles[STATE_DATABASE]) or bytes(8))[0]
        garbage = [bytes(number) for number in txn.cursor(handles[GARBAGE_DATABASE]).iternext(values=False)]
        if not contents and not garbage:
            return int(first)
        with self.content.begin(write=True) as content_txn:
            for number in garbage:
                content_txn.delete(number)
            cursor = content_txn.cursor()
            if cursor.set_range(_CONTENT_NUMBER.pack(first)):  # left by a writer that was killed
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
        """Return the stored contents of those ``numbers`` that there are."""
        with self._read_lock, self.content.begin() as txn:
            found = dict(txn.cursor().getmulti(sorted(numbers)))
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
                with files.pause_transactions():  # another thread may read on
                    files.close()
                files = None
            if files is None:
                files = _open_tables[key] = TableFiles(path, map_size)
            files.user_count += 1
            if not files.is_closed:  # as a collected store, their last user, may have done just now
                return files


def release(files: TableFiles) -> None:
    """Give back what :func:`acquire` gave; the last user closes the environments."""
    with _environments_lock:
        files.user_count -= 1
        if files.user_count <= 0:
            files.close()
            for key in [key for key, other in _open_tables.items() if other is files]:
                del _open_tables[key]


def discard(path: Path) -> None:
    """Close the environments of a table whose folder has been moved away; its stores find out by themselves."""
    with _environments_lock:
        files = _open_tables.pop(str(path.resolve()), None)
        if files is not None:
            files.close()


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
