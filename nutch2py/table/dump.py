"""Dumps: every cell of a table as JSON lines, and a copy of one table into another.

A line is a row, ``{"row": "<key>", "cells": {"<family>:<qualifier>": ["<base64 of the value>", <time in ms>], …}}``;
rows are in key order, columns in the order of their bytes. JSON holds text only: columns whose qualifier is not UTF-8
stand in a second member, ``"cells64"``, of the same form, with ``"<family>:<base64 of the qualifier>"`` for the name.
"""

from __future__ import annotations

import binascii
import contextlib
import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import orjson

from nutch2py.cells import CellError
from nutch2py.disk import new_file
from nutch2py.table.importing import BadLines, ImportRules, dump_lines
from nutch2py.table.store import DataStore, RowCells
from nutch2py.table.unreadable import check_cell

Progress = Callable[[int], None]
"""Called with the number of rows done, now and then and at the end."""
_EVERY = 1_000


def row_line(key: str, cells: RowCells) -> bytes:
    """Return the line of a row, its end of line included."""
    names: dict[str, list[Any]] = {}
    binary: dict[str, list[Any]] = {}
    for family in sorted(cells):
        entries, prefix = cells[family], f"{family.decode()}:"
        for qualifier in sorted(entries):
            value, time = entries[qualifier]
            cell = [binascii.b2a_base64(value, newline=False).decode(), time]
            try:
                names[prefix + qualifier.decode()] = cell
            except UnicodeDecodeError:
                binary[prefix + binascii.b2a_base64(qualifier, newline=False).decode()] = cell
    row: dict[str, Any] = {"row": key, "cells": names}
    if binary:
        row["cells64"] = binary
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def parse_line(line: bytes, bad_cell: Callable[[str], object] | None = None) -> tuple[str, RowCells]:
    """Return the key and the cells of a line; ``ValueError`` says what is wrong with it.

    With ``bad_cell``, which is told the reason, a cell that is malformed is left out.
    """
    row = orjson.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("row"), str) or not row["row"]:
        raise ValueError('it is not an object with a row key, {"row": "…", "cells": {…}}')
    unknown = row.keys() - {"row", "cells", "cells64"}
    if unknown:
        raise ValueError(f"it has a member {min(unknown)!r}; known are row, cells and cells64")
    found: RowCells = {}
    for member in ("cells", "cells64"):
        entries = row.get(member, {})
        if not isinstance(entries, dict):
            raise ValueError(f"{member} is not an object of columns")
        for name, cell in entries.items():
            try:
                family, colon, text = name.partition(":")
                if not family or not colon:
                    raise ValueError(f"column {name!r} is not family:qualifier")
                qualifier = text.encode() if member == "cells" else _base64(text, name)
                value = _cell(name, cell)
            except ValueError as error:
                if bad_cell is None:
                    raise
                bad_cell(str(error))
                continue
            found.setdefault(family.encode(), {})[qualifier] = value
    return row["row"], found


def _cell(name: str, cell: Any) -> tuple[bytes, int]:
    if not isinstance(cell, list) or len(cell) != 2 or not isinstance(cell[0], str) or type(cell[1]) is not int:
        raise ValueError(f'column {name!r} is not ["<base64>", <time in ms>]')
    if not 0 <= cell[1] < 1 << 63:
        raise ValueError(f"column {name!r} has the time {cell[1]}, which is not milliseconds since 1970")
    return _base64(cell[0], name), cell[1]


def _base64(text: str, name: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"column {name!r} is not base64 ({error})") from None


def export_table(store: DataStore[Any], path: str | Path, progress: Progress | None = None) -> int:
    """Write every row to ``path``, gzipped when its name ends in ``.gz``; return the number of rows.

    The file appears when it is complete; one of that name is replaced then. Raises :class:`StoreError` when it cannot
    be written.
    """
    return export_rows(store.scan_cells(), path, progress)


def export_rows(rows: Iterable[tuple[str, RowCells]], path: str | Path, progress: Progress | None = None) -> int:
    """Write some rows as :func:`export_table` does."""
    target, done = Path(path), _Done(progress)
    with new_file(target) as raw, _compressing(raw, target.name) as out:
        for key, cells in rows:
            out.write(row_line(key, cells))
            done.add()
    return done.end()


class _Done:
    """Counts the rows that are done, and tells ``progress`` now and then."""

    def __init__(self, progress: Progress | None) -> None:
        self._rows, self._progress = 0, progress

    def add(self) -> None:
        """Count a row."""
        self._rows += 1
        if self._rows % _EVERY == 0:
            self._tell()

    def end(self) -> int:
        """Tell of the last row; return how many there were."""
        self._tell()
        return self._rows

    def _tell(self) -> None:
        if self._progress:
            self._progress(self._rows)


@contextlib.contextmanager
def _compressing(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if not name.endswith(".gz"):
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:  # equal tables give equal files
        buffered = io.BufferedWriter(packed, 1 << 16)
        yield buffered
        buffered.flush()


def import_table(
    store: DataStore[Any],
    path: str | Path,
    progress: Progress | None = None,
    *,
    rules: ImportRules = ImportRules(),  # noqa: B008
    bad: BadLines | None = None,
) -> int:
    """Write the rows of a dump into the table, made when it is not there; return their number.

    Cells of the table that are newer than the dump's stay. A line that is not a row, or is too long, is warned of and
    left out, and so is a cell that is malformed or not of its column's type; ``bad`` counts them. When they are more
    than a share of the lines (``rules``) :class:`InputError` names the first; rows may be in the table by then, and
    importing the mended dump again does no harm.
    """
    source, done = Path(path), _Done(progress)
    bad = bad or BadLines(source, rules.share)
    if not store.exists():
        store.create()
    with store.batch() as batch:
        for number, line in enumerate(dump_lines(source, rules.line_bytes), 1):
            row = _row(store, number, line, rules, bad)
            if row is not None:
                batch.put_cells(*row)
                done.add()
            bad.passed(number)
        bad.finish()
    return done.end()


def _row(
    store: DataStore[Any], number: int, line: bytes | None, rules: ImportRules, bad: BadLines
) -> tuple[str, RowCells] | None:
    """Return key and cells of a line, None when there are none to write."""
    if line is None:
        bad.line(number, f"it has more than {rules.line_bytes} bytes (storage.import.line.bytes)")
        return None
    if not line.strip():
        return None
    try:
        key, cells = parse_line(line, lambda reason: bad.cell(number, reason))
    except ValueError as error:
        bad.line(number, str(error))
        return None
    for family, entries in cells.items():
        for qualifier in list(entries):
            try:
                check_cell(store.record, family, qualifier, entries[qualifier][0])
            except CellError as error:
                bad.cell(number, f"row {key}: {error}")
                del entries[qualifier]
    return (key, cells) if any(cells.values()) else None


def copy_table(
    source: DataStore[Any],
    target: DataStore[Any],
    progress: Progress | None = None,
    *,
    key_of: Callable[[str], str | None] = str,
) -> int:
    """Copy every cell with its timestamp into ``target``, made when it is not there; return the number of rows.

    ``key_of`` gives the key that a row has there, None for one that is left out.
    """
    done = _Done(progress)
    if not target.exists():
        target.create()
    with target.batch() as batch:
        for key, cells in source.scan_cells():
            there = key_of(key)
            if there is None:
                continue
            batch.put_cells(there, cells)
            done.add()
    return done.end()
