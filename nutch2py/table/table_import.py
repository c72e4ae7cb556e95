"""Imports a dump of :mod:`nutch2py.table.table_export`, JSON lines, into a table.

A dump is untrusted input: lines have a maximum length, and malformed lines are counted and skipped.
"""

from __future__ import annotations

import binascii
import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.records.cells import CellError
from nutch2py.support.reporting import warn
from nutch2py.table.data_store import DataStore, RowCells
from nutch2py.table.progress_counter import ProgressCallback, ProgressCounter
from nutch2py.table.row_validation import validate_cell

_GZIP_MAGIC = b"\x1f\x8b"
_READ_SIZE = 1 << 20
_MAX_WARNINGS = 10
_MIN_LINES_BEFORE_GIVING_UP = 1_000
"""Lines after which the import of a file with too many bad lines stops; that of a shorter file stops at its end."""


class ImportLimits(NamedTuple):
    """Limits of an import.

    ``max_line_bytes`` is the maximum length of a line, ``max_bad_share`` the maximum share of bad lines (0 to 1).
    """

    max_line_bytes: int = 64 << 20
    max_bad_share: float = 0.1

    @classmethod
    def from_conf(cls, conf: Configuration) -> ImportLimits:
        """Return the limits of ``storage.import.line.bytes`` and ``storage.import.bad.share``."""
        return cls(conf.get_int("storage.import.line.bytes", 64 << 20), conf.get_float("storage.import.bad.share", 0.1))


class BadLineCounter:
    """Count the lines and cells that an import skips, and log the first ten."""

    def __init__(self, source: Path, max_bad_share: float) -> None:
        self.source, self.max_bad_share = source, max_bad_share
        self.skipped_lines = self.skipped_cells = 0
        self._bad_line_count = self._lines_read = self._last_bad_line = 0
        self._first_error = ""

    def skip_line(self, number: int, reason: str) -> None:
        """Skip a line."""
        self.skipped_lines += 1
        self._record(number, reason, "skipped")

    def skip_cell(self, number: int, reason: str) -> None:
        """Skip a cell; the row's other cells are imported."""
        self.skipped_cells += 1
        self._record(number, reason, "cell skipped")

    def _record(self, number: int, reason: str, action: str) -> None:
        self._first_error = self._first_error or f"{self.source}, line {number}: {reason}"
        if self.skipped_lines + self.skipped_cells <= _MAX_WARNINGS:
            more = " (further ones are not logged)" if self.skipped_lines + self.skipped_cells == _MAX_WARNINGS else ""
            warn(f"{self.source}, line {number}: {reason}: {action}{more}")
        if number != self._last_bad_line:
            self._bad_line_count, self._last_bad_line = self._bad_line_count + 1, number

    def finish_line(self, number: int) -> None:
        """Count a line as read; raise :class:`InputError` if too many lines are bad so far."""
        self._lines_read = number
        if self._bad_line_count and number >= _MIN_LINES_BEFORE_GIVING_UP:
            self.finish()

    def finish(self) -> None:
        """Raise :class:`InputError` if too many lines were bad."""
        if self._bad_line_count > self.max_bad_share * self._lines_read:
            raise InputError(
                f"{self._first_error}; {self._bad_line_count} of {self._lines_read} lines are bad, which is more than "
                f"storage.import.bad.share allows: correct them and import again"
            )


def read_dump_lines(source: Path, max_bytes: int) -> Iterator[bytes | None]:
    """Yield the lines of a dump, plain or gzipped; None for a line of more than ``max_bytes`` bytes.

    Raises:
        InputError: The file cannot be read to its end.
    """
    try:
        with source.open("rb") as raw:
            packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            file: BufferedIOBase = gzip.GzipFile(fileobj=raw) if packed else raw
            while line := file.readline(max_bytes + 1):
                if len(line) <= max_bytes or line.endswith(b"\n"):
                    yield line
                    continue
                while (piece := file.readline(_READ_SIZE)) and not piece.endswith(b"\n"):
                    pass
                yield None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read the dump {source}: {error}") from error


def decode_row(line: bytes, on_bad_cell: Callable[[str], object] | None = None) -> tuple[str, RowCells]:
    """Return the key and the cells of a line.

    Args:
        line: A line of a dump.
        on_bad_cell: Called with the reason for each malformed cell, which is then skipped; without it, a malformed cell
            raises ``ValueError``.

    Raises:
        ValueError: The line is not a row.
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
                qualifier = text.encode() if member == "cells" else _decode_base64(text, name)
                value = _decode_cell(name, cell)
            except ValueError as error:
                if on_bad_cell is None:
                    raise
                on_bad_cell(str(error))
                continue
            found.setdefault(family.encode(), {})[qualifier] = value
    return row["row"], found


def _decode_cell(name: str, cell: object) -> tuple[bytes, int]:
    if not isinstance(cell, list) or len(cell) != 2 or not isinstance(cell[0], str) or type(cell[1]) is not int:
        raise ValueError(f'column {name!r} is not ["<base64>", <time in ms>]')
    if not 0 <= cell[1] < 1 << 63:
        raise ValueError(f"column {name!r} has the time {cell[1]}, which is not milliseconds since 1970")
    return _decode_base64(cell[0], name), cell[1]


def _decode_base64(text: str, name: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"column {name!r} is not base64 ({error})") from None


def import_table(
    store: DataStore[Any],
    path: str | Path,
    progress: ProgressCallback | None = None,
    *,
    limits: ImportLimits = ImportLimits(),  # noqa: B008
    bad_lines: BadLineCounter | None = None,
) -> int:
    """Write the rows of a dump into the table, which is created if missing; return their number.

    Cells of the table that are newer than the dump's are kept. Lines that are malformed or too long are logged and
    skipped, as are cells that are malformed or of another type than their column; ``bad_lines`` counts them. Importing
    a corrected dump again is safe.

    Raises:
        InputError: The share of bad lines exceeds ``limits``. Some rows may already be in the table.
    """
    source, done = Path(path), ProgressCounter(progress)
    bad_lines = bad_lines or BadLineCounter(source, limits.max_bad_share)
    if not store.exists():
        store.create()
    with store.batch() as batch:
        for number, line in enumerate(read_dump_lines(source, limits.max_line_bytes), 1):
            row = _read_row(store, number, line, limits, bad_lines)
            if row is not None:
                batch.put_cells(*row)
                done.add()
            bad_lines.finish_line(number)
        bad_lines.finish()
    return done.finish()


def _read_row(
    store: DataStore[Any], number: int, line: bytes | None, limits: ImportLimits, bad_lines: BadLineCounter
) -> tuple[str, RowCells] | None:
    """Return key and cells of a line, None if nothing is to be written."""
    if line is None:
        bad_lines.skip_line(number, f"it has more than {limits.max_line_bytes} bytes (storage.import.line.bytes)")
        return None
    if not line.strip():
        return None
    try:
        key, cells = decode_row(line, lambda reason: bad_lines.skip_cell(number, reason))
    except ValueError as error:
        bad_lines.skip_line(number, str(error))
        return None
    for family, entries in cells.items():
        for qualifier in list(entries):
            try:
                validate_cell(store.record_class, family, qualifier, entries[qualifier][0])
            except CellError as error:
                bad_lines.skip_cell(number, f"row {key}: {error}")
                del entries[qualifier]
    return (key, cells) if any(cells.values()) else None
