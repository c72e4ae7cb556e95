"""Decodes JSON rows of the derived table, including rows in which older versions stored other field names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_CURRENT_NAMES = {
    "begun": "start_time",
    "ended": "finish_time",
    "seen": "last_seen",
    "done": "rows",
    "figures": "table_stats",
    "made": "counted_at",
    "all_hosts": "host_count",
}
"""Stored field name of older versions -> current field name."""
_NESTED_OBJECTS = ("entry", "table_stats")  # other objects have names of the crawl as keys: counters, statuses


def decode_stored(data: bytes, row_type: type[T]) -> T | None:
    """Return the decoded row; None for bytes that another program or a later version wrote."""
    try:
        return msgspec.json.decode(data, type=row_type)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:  # rows of older versions are rare: only they pay for a second decoding
        return msgspec.convert(_with_current_names(msgspec.json.decode(data)), row_type)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _with_current_names(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    renamed = {_CURRENT_NAMES.get(name, name): field for name, field in value.items()}
    return renamed | {name: _with_current_names(renamed[name]) for name in _NESTED_OBJECTS if name in renamed}
