"""Copies a table into another one, cell by cell: the core of copytable and mergedb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nutch2py.table.data_store import DataStore
from nutch2py.table.progress_counter import ProgressCallback, ProgressCounter


def copy_table(
    source: DataStore[Any],
    target: DataStore[Any],
    progress: ProgressCallback | None = None,
    *,
    map_key: Callable[[str], str | None] = str,
) -> int:
    """Copy every cell with its timestamp into ``target``, which is created if missing; return the number of rows.

    ``map_key`` returns the key of a row in ``target``, None to skip the row.
    """
    done = ProgressCounter(progress)
    if not target.exists():
        target.create()
    with target.batch() as batch:
        for key, cells in source.scan_cells():
            new_key = map_key(key)
            if new_key is None:
                continue
            batch.put_cells(new_key, cells)
            done.add()
    return done.finish()
