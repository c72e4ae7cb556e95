"""Decodes JSON rows of the derived table, including rows in which older versions stored other field names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

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
_CURRENT_COUNTER_GROUPS = {"links_left_out": "links_skipped"}
_CURRENT_COUNTERS = {
    ("IndexerStatus", "refused"): "rejected",
    ("pagerank", "links_left_out"): "links_skipped",
}
"""Stored group and name of a counter of older versions -> current name."""
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


def rename_counters(counters: Mapping[str, Mapping[str, int]]) -> Mapping[str, Mapping[str, int]]:
    """Return the counters of a stored job under their current names."""
    if not (
        _CURRENT_COUNTER_GROUPS.keys() & counters.keys()
        or any(name in counters.get(group, ()) for group, name in _CURRENT_COUNTERS)
    ):
        return counters  # the usual case
    return {
        _CURRENT_COUNTER_GROUPS.get(group, group): {
            _CURRENT_COUNTERS.get((group, name), name): count for name, count in counts.items()
        }
        for group, counts in counters.items()
    }


def _with_current_names(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    renamed = {_CURRENT_NAMES.get(name, name): field for name, field in value.items()}
    return renamed | {name: _with_current_names(renamed[name]) for name in _NESTED_OBJECTS if name in renamed}
