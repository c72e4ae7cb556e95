"""Translates errors of LMDB and the operating system to :class:`nutch2py.errors.StoreError`, with cause and remedy."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

import lmdb

from nutch2py.errors import PermissionDeniedError, StoreError
from nutch2py.table.embedded.storage.lmdb_environment import MAX_READERS
from nutch2py.table.embedded.storage.lmdb_pages import DamagedFileError
from nutch2py.table.embedded.storage.packing import DamagedCellsError

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT})
"""LMDB reports a short write, as on a full disk, as EIO."""
_READ_ONLY_HINT = "its file system is read-only: see why (dmesg), and mount it for writing"
_REPAIR_HINT = (
    "restore it, or save what can be read (exporttable -salvage FILE) and import that into a table in another folder "
    "of storage.data.store"
)


@contextlib.contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Translate errors of LMDB and the operating system to :class:`StoreError` with cause and remedy."""
    try:
        yield
    except lmdb.MapFullError as error:
        raise StoreError(
            f"table {where} has reached storage.embedded.map.size: raise it; nothing of this batch was written"
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
        raise StoreError(f"{where} is open in more than {MAX_READERS} readers: run fewer tasks at once") from error
    except lmdb.MapResizedError as error:
        raise StoreError(
            f"{where} exceeds storage.embedded.map.size of this process: give all processes the same value"
        ) from error
    except (lmdb.ReadonlyError, lmdb.LockError, PermissionError) as error:
        raise PermissionDeniedError(
            f"cannot read or write in {where} ({error}): give this user the right to"
        ) from error
    except (lmdb.Error, OSError) as error:
        number = error.errno if isinstance(error, OSError) else error.code  # LMDB's own codes are negative
        if number == errno.EROFS:
            raise PermissionDeniedError(f"cannot write in {where}: {_READ_ONLY_HINT}") from error
        if isinstance(error, lmdb.DiskError) or number in _DISK_ERRORS:
            raise StoreError(
                f"no space left for {where}, or its disk fails ({error}): free some space; nothing of this batch was "
                "written"
            ) from error
        if isinstance(error, OSError):  # missing, not a folder, or its name is too long
            raise StoreError(
                f"cannot open {where} ({error.strerror or error}): check that its folder is a folder or can be "
                "created, or name another in storage.data.store"
            ) from error
        raise StoreError(f"the table {where} fails: {error}") from error


def damaged_table_error(where: str, error: DamagedCellsError) -> StoreError:
    """Return the error for damaged cells."""
    return StoreError(f"{where} is damaged: {error}; run checktable to list the damage; {_REPAIR_HINT}")
