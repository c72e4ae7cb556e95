"""Validation of rows written by other programs: rows with cells of another type are logged, counted and skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from nutch2py.records.cells import CellError, decode_text, identity
from nutch2py.records.record import Field, Record, RecordField
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from nutch2py.support.reporting import warn

R = TypeVar("R", bound=Record)
_MAX_WARNINGS = 10
_MARKS, _DISTANCE = WebPage.markers.family, Mark.DISTANCE.encode()
_METADATA, _CASH = WebPage.metadata.family, MetadataKey.CASH.encode()
_fallible_cache: dict[tuple[type[Record], frozenset[RecordField] | None], tuple[Field[Any], ...]] = {}


def validate_record(record: Record) -> None:
    """Decode the fields of a record before a job uses it; raise :class:`CellError` for a cell of another type.

    Only fields that can fail are decoded: numbers and status records (the record caches the values), and those marks
    and metadata of a page that jobs read as numbers.
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
    """Raise :class:`CellError` unless ``value`` has its column's type; columns of no field may hold any bytes."""
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
        raise CellError(f"mk:{Mark.DISTANCE}: {cell[:20]!r} is not a number")


def _validate_cash(cell: bytes) -> None:
    if len(cell) < 4:
        raise CellError(f"mtdt:{MetadataKey.CASH}: {len(cell)} bytes, a float has 4")


def _fallible_fields(record: type[Record], fields: frozenset[RecordField] | None) -> tuple[Field[Any], ...]:
    """Return those of ``fields`` (None: all fields) with cells that can be malformed, which text and bytes cannot."""
    found = _fallible_cache.get((record, fields))
    if found is None:
        found = _fallible_cache[record, fields] = tuple(
            field
            for field in record.FIELDS.values()
            if (fields is None or field in fields) and not field.is_map and field.decode not in (decode_text, identity)
        )
    return found


class RowValidator:
    """Check rows, count the invalid ones in ``invalid_count``, and log the first ten."""

    def __init__(self) -> None:
        self.invalid_count = 0

    def is_valid(self, key: str, record: Record) -> bool:
        """Return whether every cell of the record has its column's type."""
        try:
            validate_record(record)
        except CellError as error:
            self.invalid_count += 1
            if self.invalid_count <= _MAX_WARNINGS:
                more = " (further ones are not logged)" if self.invalid_count == _MAX_WARNINGS else ""
                warn(f"row {key} skipped: {error}{more}")
            return False
        return True

    def valid_rows(self, rows: Iterable[tuple[str, R]]) -> Iterator[tuple[str, R]]:
        """Yield the valid rows, then log the number of skipped ones."""
        for key, record in rows:
            if self.is_valid(key, record):
                yield key, record
        warn_skipped_rows(self.invalid_count)


def warn_skipped_rows(count: int) -> None:
    """Log a warning if rows were skipped."""
    if count:
        warn(f"{count} rows skipped: they have cells of another type than their columns; run checktable to list them")
