"""Rows that another program has written, with cells that are not of their columns' types: left out, named, counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from nutch2py.records.cells import CellError, decode_text, identity
from nutch2py.records.record import Field, Record
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from nutch2py.support.reporting import warn

R = TypeVar("R", bound=Record)
_MAX_WARNINGS = 10
_MARKS, _DISTANCE = WebPage.markers.family, Mark.DISTANCE.encode()
_METADATA, _CASH = WebPage.metadata.family, MetadataKey.CASH.encode()
_fallible_cache: dict[tuple[type[Record], frozenset[Field[Any]] | None], tuple[Field[Any], ...]] = {}


def validate_record(record: Record) -> None:
    """Decode what was read, before a job acts on half of it; raise :class:`CellError` for a cell of another type.

    Only fields that can fail are looked at (numbers, the status records), and their values are kept by the record; of
    a page's marks and metadata the entries that jobs take for numbers.
    """
    for field in _fallible_fields(type(record), record._fields):
        field.__get__(record, type(record))
    if isinstance(record, WebPage):
        distance = record.columns(_MARKS).get(_DISTANCE)
        if distance is not None:
            _validate_distance(distance)
        cash = record.columns(_METADATA).get(_CASH)
        if cash is not None:
            _validate_cash(cash)


def validate_cell(record: type[Record], family: bytes, qualifier: bytes, value: bytes) -> None:
    """Raise :class:`CellError` unless ``value`` is of its column's type; foreign columns may hold anything."""
    for field in _fallible_fields(record, None):
        if field.family == family and field.qualifier == qualifier:
            try:
                field.decode(value)
            except CellError as error:
                raise CellError(f"{field.column}: {error}") from error
    if record is WebPage and (family, qualifier) == (_MARKS, _DISTANCE):
        _validate_distance(value)
    if record is WebPage and (family, qualifier) == (_METADATA, _CASH):
        _validate_cash(value)


def _validate_distance(cell: bytes) -> None:
    if not cell.isdigit():
        raise CellError(f"mk:{Mark.DISTANCE}: {cell[:20]!r} is no number")


def _validate_cash(cell: bytes) -> None:
    if len(cell) < 4:
        raise CellError(f"mtdt:{MetadataKey.CASH}: {len(cell)} bytes where a float has 4")


def _fallible_fields(record: type[Record], fields: frozenset[Field[Any]] | None) -> tuple[Field[Any], ...]:
    """Return those of ``fields`` (None: all of the record) whose cells may be malformed: text and bytes cannot."""
    found = _fallible_cache.get((record, fields))
    if found is None:
        found = _fallible_cache[record, fields] = tuple(
            field
            for field in record.FIELDS.values()
            if (fields is None or field in fields) and not field.is_map and field.decode not in (decode_text, identity)
        )
    return found


class RowValidator:
    """Tells rows that can be read from others. ``invalid_count``: how many could not; the first ten are warned of."""

    def __init__(self) -> None:
        self.invalid_count = 0

    def is_valid(self, key: str, record: Record) -> bool:
        """Tell whether every cell that was read is of its column's type."""
        try:
            validate_record(record)
        except CellError as error:
            self.invalid_count += 1
            if self.invalid_count <= _MAX_WARNINGS:
                more = " (no further ones are named)" if self.invalid_count == _MAX_WARNINGS else ""
                warn(f"row {key} is left out: {error}{more}")
            return False
        return True

    def valid_rows(self, rows: Iterable[tuple[str, R]]) -> Iterator[tuple[str, R]]:
        """Yield the rows that can be read."""
        for key, record in rows:
            if self.is_valid(key, record):
                yield key, record
        warn_skipped_rows(self.invalid_count)


def warn_skipped_rows(count: int) -> None:
    """Warn of rows that were left out, if there are any."""
    if count:
        warn(f"{count} rows were left out: they have cells that are not of their columns' types; checktable lists them")
