"""Conditions of ``export -where``: ``field=value`` and the like, all of which a page must meet."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from nutch2py.errors import UsageError
from nutch2py.jobs.export.export_columns import EXPORT_COLUMNS, STATUS_VALUES, ExportedPage

_CONDITION = re.compile(r"\s*([A-Za-z_]+)\s*(!~|!=|<=|>=|=|<|>|~)(.*)", re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    "<": lambda one, other: one is not None and one < other,
    "<=": lambda one, other: one is not None and one <= other,
    ">": lambda one, other: one is not None and one > other,
    ">=": lambda one, other: one is not None and one >= other,
    "~": lambda one, other: one is not None and other.search(one) is not None,
    "!~": lambda one, other: one is None or other.search(one) is None,
}


def parse_time(text: str) -> int:
    """Return a date or time of ISO 8601, UTC unless it names a zone, in ms since 1970; raise ValueError for another.

    >>> parse_time("2026-11-24")
    1795478400000
    """
    time = datetime.fromisoformat(text.strip())
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


class RowCondition(NamedTuple):
    """A condition on one column. ``value`` is of the column's type: a time in ms, a number, a text or a pattern."""

    column: str
    operator: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> RowCondition:
        """Return the condition that a text states.

        Raises:
            UsageError: It states none, its field is unknown or cannot be compared, or its value is of another type.
        """
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise UsageError(
                f"-where {text!r} is not a condition: give a field, one of {' '.join(_COMPARISONS)} and a value, "
                "such as 'lang=de' or 'fetch_time>=2026-11-01'"
            )
        name, operator, value = found[1], found[2], found[3].strip()
        column = EXPORT_COLUMNS.get(name)
        if column is None or column.type not in ("string", "int32", "int64", "float32", "timestamp"):
            names = [each.name for each in EXPORT_COLUMNS.values() if each.type not in ("links", "headers", "binary")]
            raise UsageError(f"-where {text!r}: {name!r} is not a field to compare: give one of {', '.join(names)}")
        if name == "status" and operator in ("=", "!=") and value not in STATUS_VALUES:
            raise UsageError(f"-where {text!r}: {value!r} is not a status: give one of {', '.join(STATUS_VALUES[1:])}")
        try:
            return cls(name, operator, _parse_value(column.type, operator, value))
        except (ValueError, re.error) as error:
            wanted = "a regular expression" if "~" in operator else _WANTED[column.type]
            raise UsageError(f"-where {text!r}: {value!r} is not {wanted} ({error})") from error

    def is_met(self, row: ExportedPage) -> bool:
        """Return whether a page meets the condition. A missing value is equal to nothing but the empty text."""
        found = EXPORT_COLUMNS[self.column].value(row)
        if EXPORT_COLUMNS[self.column].type == "timestamp" and isinstance(found, str):
            found = parse_time(found)
        if found is None and self.value == "":
            found = ""
        return _COMPARISONS[self.operator](found, self.value)


_WANTED = {"int32": "a whole number", "int64": "a whole number", "float32": "a number", "string": "a text"} | {
    "timestamp": "a date or time such as 2026-11-24 or 2026-11-24T17:00:00Z"
}


def _parse_value(kind: str, operator: str, text: str) -> object:
    if "~" in operator:
        if kind != "string":
            raise ValueError("~ compares texts")
        return re.compile(text)
    match kind:
        case "int32" | "int64":
            return int(text)
        case "float32":
            return float(text)
        case "timestamp":
            return parse_time(text)
        case _:
            return text
