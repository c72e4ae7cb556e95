"""Exports a table as JSON lines, which :mod:`nutch2py.table.table_import` reads.

A line is a row, ``{"row": "<key>", "cells": {"<family>:<qualifier>": ["<base64 of the value>", <time in ms>], …}}``;
rows are in key order, columns in byte order. JSON holds text only: columns with a qualifier that is not UTF-8 are in a
second member ``"cells64"`` of the same form, named ``"<family>:<base64 of the qualifier>"``.
"""

from __future__ import annotations

import binascii
import contextlib
import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import orjson

from nutch2py.support.atomic_files import atomic_write
from nutch2py.table.data_store import DataStore, RowCells
from nutch2py.table.progress_counter import ProgressCallback, ProgressCounter


def encode_row(key: str, cells: RowCells) -> bytes:
    """Return the line of a row, including the line end."""
    names: dict[str, list[object]] = {}
    binary: dict[str, list[object]] = {}
    for family in sorted(cells):
        entries, prefix = cells[family], f"{family.decode()}:"
        for qualifier in sorted(entries):
            value, time = entries[qualifier]
            cell = [binascii.b2a_base64(value, newline=False).decode(), time]
            try:
                names[prefix + qualifier.decode()] = cell
            except UnicodeDecodeError:
                binary[prefix + binascii.b2a_base64(qualifier, newline=False).decode()] = cell
    row: dict[str, object] = {"row": key, "cells": names}
    if binary:
        row["cells64"] = binary
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def export_table(store: DataStore[Any], path: str | Path, progress: ProgressCallback | None = None) -> int:
    """Write every row to ``path``, gzipped if its name ends in ``.gz``; return the number of rows.

    The file appears when it is complete, and replaces an existing one. Raises :class:`StoreError` if it cannot be
    written.
    """
    return export_rows(store.scan_cells(), path, progress)


def export_rows(
    rows: Iterable[tuple[str, RowCells]], path: str | Path, progress: ProgressCallback | None = None
) -> int:
    """Write ``rows`` as :func:`export_table` does."""
    target, done = Path(path), ProgressCounter(progress)
    with atomic_write(target) as raw, _gzip_if_named(raw, target.name) as out:
        for key, cells in rows:
            out.write(encode_row(key, cells))
            done.add()
    return done.finish()


@contextlib.contextmanager
def _gzip_if_named(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if not name.endswith(".gz"):
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:  # reproducible: no name, no time
        buffered = io.BufferedWriter(packed, 1 << 16)
        yield buffered
        buffered.flush()
