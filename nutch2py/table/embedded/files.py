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

from nutch2py.errors import NoRightError, StoreError
from nutch2py.reporting import adopt, reporter, warn
from nutch2py.table.embedded.mapped import PIECE, RUN, MappedFiles
from nutch2py.table.embedded.packing import DamagedCellsError
from nutch2py.table.embedded.pages import DamagedFileError, PageFile, check_whole

STATE, GARBAGE, SAMPLE = b":state", b":garbage", b":sample"
"""Databases of ``meta`` that hold no family (a family's name has no colon; that of a content column has one inside)."""
NEXT_CONTENT = b"next content"
VERSION, SCHEMA = b"version", b"schema"
READY = "ready"
"""A file in a table's folder that says that the table was completely made."""
DEFAULT_MAP_SIZE = 1 << 40
_MAX_DATABASES, _MAX_READERS = 512, 512
_DISK_TROUBLE = frozenset({errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT})
_READ_ONLY = "its file system is read-only: see why (dmesg), and mount it for writing (reading needs that, too)"
"""LMDB calls a write that was cut short, as on a disk that fills up, an input/output error."""
_PATIENCE = 3.0  # seconds that a flush of another process hardly ever takes
_NUMBER = struct.Struct(">Q")
_SAVE = (
    "restore it, or save what can be read (exporttable -salvage FILE) and import that into a table in another folder "
    "of storage.data.store"
)
_open: dict[str, TableFiles] = {}
_lock = threading.RLock()


@contextlib.contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn LMDB's errors and the system's into :class:`StoreError` with cause and repair."""
    try:
        yield
    except lmdb.MapFullError as error:
        raise StoreError(
            f"table {where} has reached storage.embedded.map.size: raise it; nothing of this group was written"
        ) from error
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError) as error:
        raise StoreError(f"{where} holds a file that is not a sound table ({error}): {_SAVE}") from error
    except DamagedFileError as error:
        raise StoreError(f"{where} holds a file that is not a sound table: {error}; {_SAVE}") from error
    except DamagedCellsError as error:
        raise damage(where, error) from error
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
        raise NoRightError(
            f"cannot read and write in {where} ({error}): give this user the right to both (reading needs to write, "
            "too, for the lock file)"
        ) from error
    except (lmdb.Error, OSError) as error:
        number = error.errno if isinstance(error, OSError) else error.code  # LMDB's own are negative
        if number == errno.EROFS:
            raise StoreError(f"cannot write in {where}: {_READ_ONLY}") from error
        if isinstance(error, lmdb.DiskError) or number in _DISK_TROUBLE:
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


def damage(where: str, error: DamagedCellsError) -> StoreError:
    """Return the error for cells that are not what was written."""
    return StoreError(f"{where} is damaged: {error}; checktable says where; {_SAVE}")


@contextlib.contextmanager
def making(path: Path) -> Iterator[None]:
    """Let no other process make the same table within the block; first take away what a full disk has left half made.

    LMDB writes the first two pages of a file at once. A file that is shorter holds nothing, and LMDB would refuse it
    for ever.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not (path / READY).exists():
            for data in path.glob("*/data.mdb"):
                if data.stat().st_size < 2 * mmap.PAGESIZE:
                    data.unlink()
        yield
    finally:
        os.close(folder)


def _environment(path: Path, map_size: int) -> lmdb.Environment:
    """Open an LMDB environment; free the slots of readers that died. Commits are synchronous, readahead would hurt.

    A file that was cut is refused: LMDB would map it, and die of SIGBUS where it ends.
    """
    if (path.parent / READY).exists():
        data = path / "data.mdb"
        try:
            check_whole(data)
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
    """The open environments of one table in this process. ``users``: stores that share them."""

    def __init__(self, path: Path, map_size: int) -> None:
        self.path, self.users, self.closed, self.failed = path, 0, False, False
        self._databases: dict[bytes, Any] = {}
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self.meta = _environment(path / "meta", map_size)
        try:
            self.content = _environment(path / "content", map_size)
        except BaseException:
            self.meta.close()
            raise
        self._data = str(path / "meta" / "data.mdb")
        self._inode = os.stat(self._data).st_ino  # noqa: PTH116  # asked for every chunk and get: a Path costs twice
        self._mapped = MappedFiles([path / part / "data.mdb" for part in ("meta", "content")], _lock)
        self._open_databases()

    def alive(self) -> bool:
        """Tell whether these are open, fit for use, and still the table's files."""
        if self.closed or self.failed:
            return False
        try:
            return os.stat(self._data).st_ino == self._inode  # noqa: PTH116
        except OSError:
            return False

    def close(self) -> None:
        """Close both environments."""
        if not self.closed:
            self.closed = True
            self.meta.close()
            self.content.close()

    def names(self, txn: Any) -> list[bytes]:
        """Return the names of the databases in ``meta``, in order."""
        return [bytes(name) for name in txn.cursor().iternext(values=False)]

    def _open_databases(self) -> None:
        with self._writing, self._begun() as txn:
            opened = {
                n: self.meta.open_db(n, txn=txn, create=False) for n in self.names(txn) if n not in self._databases
            }
        self._databases.update(opened)

    def families(self) -> list[bytes]:
        """Return the databases that hold cells, those that another process has just made included."""
        with self.reading() as txn:
            names = self.names(txn)
        if any(name not in self._databases for name in names):
            self._open_databases()
        return [name for name in names if not name.startswith(b":")]

    def known(self) -> list[bytes]:
        """Return the databases that hold cells and were there when this was last looked at."""
        return [name for name in self._databases if not name.startswith(b":")]

    def database(self, name: bytes) -> Any | None:
        """Return the handle of a database that exists, else None."""
        return self._databases.get(name)

    def get_state(self, txn: Any, name: bytes) -> bytes | None:
        """Return what the table says of itself under ``name``."""
        handle = self._databases.get(STATE)
        found: bytes | None = txn.get(name, db=handle) if handle is not None else None
        return found

    @contextlib.contextmanager
    def reading(self, places: int = RUN) -> Iterator[Any]:
        """Give a read transaction of ``meta``, for so many ``places``; one thread of a process reads at a time."""
        with self._reading, self.meta.begin() as txn:
            yield txn
        self._mapped.look(places)

    def look(self) -> None:
        """Let go of what is mapped when it is much; called within a transaction, after each :data:`PIECE`."""
        self._mapped.look(PIECE)

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Wait until no thread is inside a transaction, and let none begin one."""
        with self._writing, self._reading:
            yield

    @contextlib.contextmanager
    def writing(self, makes: Sequence[bytes] = ()) -> Iterator[tuple[Any, dict[bytes, Any]]]:
        """Give the write transaction of ``meta`` and the handles of its databases; those of ``makes`` are made.

        Commits at the end of the block, and leaves everything as it was when the block raises. LMDB takes nothing more
        when the disk has refused the end of a commit: then the table is opened anew for the next one.
        """
        with self._writing, self._noting_failure():
            with self._begun() as txn:
                handles = dict(self._databases)
                for name in {*self.names(txn), *makes} - handles.keys():
                    handles[name] = self.meta.open_db(name, txn=txn)
                yield txn, handles
            self._databases = handles
        self._mapped.look(RUN)

    def _begun(self) -> Any:
        """Begin a write transaction of ``meta``; say so when another process is long about its own."""
        taken = reporter()

        def say() -> None:
            adopt(taken)
            where = f"{self.path.name} in {self.path.parent}"
            warn(f"waiting for the table {where}, which another process is writing (a dueindex takes long)")

        timer = threading.Timer(_PATIENCE, say)
        timer.daemon = True
        timer.start()
        try:
            return self.meta.begin(write=True)
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except lmdb.Error as error:
            self.failed = not isinstance(error, lmdb.MapFullError)
            raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[tuple[PageFile, PageFile]]:
        """Give the pages of both files as they are now; until the end no writer uses a page of them again."""
        with contextlib.ExitStack() as held:
            meta = held.enter_context(PageFile(self.path / "meta" / "data.mdb"))
            content = held.enter_context(PageFile(self.path / "content" / "data.mdb"))
            with self.writing():
                for environment, file in ((self.meta, meta), (self.content, content)):
                    held.enter_context(environment.begin())
                    file.use(file.newest())
            yield meta, content

    def write_contents(self, txn: Any, handles: dict[bytes, Any], contents: Sequence[bytes]) -> int:
        """Commit ``contents`` and delete what no row refers to; return the number of the first one.

        ``txn`` is the write transaction of ``meta``, whose lock keeps other writers away from ``content``, too.
        """
        first = _NUMBER.unpack(txn.get(NEXT_CONTENT, db=handles[STATE]) or bytes(8))[0]
        garbage = [bytes(number) for number in txn.cursor(handles[GARBAGE]).iternext(values=False)]
        if not contents and not garbage:
            return int(first)
        with self.content.begin(write=True) as content_txn:
            for number in garbage:
                content_txn.delete(number)
            cursor = content_txn.cursor()
            if cursor.set_range(_NUMBER.pack(first)):  # left by a writer that was killed
                while cursor.delete():
                    pass
            cursor.putmulti([(_NUMBER.pack(first + i), content) for i, content in enumerate(contents)], append=True)
        for number in garbage:
            txn.delete(number, db=handles[GARBAGE])
        txn.put(NEXT_CONTENT, _NUMBER.pack(first + len(contents)), db=handles[STATE])
        return int(first)

    def read_contents(self, numbers: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored contents of those ``numbers`` that there are."""
        with self._reading, self.content.begin() as txn:
            found = dict(txn.cursor().getmulti(sorted(numbers)))
        self._mapped.look(len(numbers))
        return found


def opening() -> threading.RLock:
    """Return the lock under which environments are opened and closed."""
    return _lock


def acquire(path: Path, map_size: int, where: str) -> TableFiles:
    """Return the environments of the table in ``path``, opened at most once in this process."""
    key = str(path.resolve())
    with _lock, explained(where):
        while True:
            files = _open.get(key)
            if files is not None and not files.alive():
                with files.still():  # another thread may read on
                    files.close()
                files = None
            if files is None:
                files = _open[key] = TableFiles(path, map_size)
            files.users += 1
            if not files.closed:  # as a collected store, their last user, may have done just now
                return files


def release(files: TableFiles) -> None:
    """Give back what :func:`acquire` gave; the last user closes the environments."""
    with _lock:
        files.users -= 1
        if files.users <= 0:
            files.close()
            for key in [key for key, other in _open.items() if other is files]:
                del _open[key]


def discard(path: Path) -> None:
    """Close the environments of a table whose folder has been moved away; its stores find out by themselves."""
    with _lock:
        files = _open.pop(str(path.resolve()), None)
        if files is not None:
            files.close()


_forking = contextlib.ExitStack()


def _before_fork() -> None:
    _lock.acquire()
    for key in sorted(_open):
        _forking.enter_context(_open[key].still())


def _after_fork() -> None:
    _forking.close()
    _lock.release()


def _after_fork_in_child() -> None:
    _after_fork()
    for inherited in _open.values():
        inherited.close()
    _open.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
