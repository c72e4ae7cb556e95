"""Limits the bytes of a response with hits, whatever the documents hold: the values of fields are cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nutch2py.conf.configuration import Configuration

DEFAULT_RESPONSE_BYTES = 4 << 20
_BASE_BYTES = 300  # of a hit: names and punctuation
_ENVELOPE_BYTES = 500  # of a response without hits
_VALUE_BYTES = 4  # of a value or a field: quotes and separators
_READ_SHARES = 4
_MIN_READ_CHARACTERS = 250_000
"""Characters of a value that are read in any case: snippets are made of its start."""


def response_byte_limit(conf: Configuration) -> int:
    """Return ``search.response.max.bytes``."""
    return max(conf.get_int("search.response.max.bytes", DEFAULT_RESPONSE_BYTES), 1)


def max_read_characters(limit: int, rows: int) -> int:
    """Return the characters of a value to read for a response of ``limit`` bytes and ``rows`` hits.

    It is more than the share of a hit, since others may leave some of theirs; a value of that length counts as cut.
    """
    return max(_READ_SHARES * limit // max(rows, 1), _MIN_READ_CHARACTERS)


class ResponseBudget:
    """Shares the bytes of a response among its hits; what one hit leaves is for the next ones.

    Attributes:
        is_cut: Whether any value was cut.
    """

    def __init__(self, limit: int, hits: int, max_characters: int = 0) -> None:
        """``max_characters``: the limit within which values were read; 0: none."""
        self._left, self._hits, self.is_cut = limit - _ENVELOPE_BYTES, hits, False
        self._max_characters = max_characters

    def spend(self, value: object) -> None:
        """Count a part of the response that is not cut."""
        self._left -= _json_size(value)

    def cut_fields(self, fields: Mapping[str, Any], base: object) -> tuple[dict[str, Any], list[str]]:
        """Return the fields of the next hit within its share, and the names of those that are cut.

        Small fields are kept first. ``base``: the parts of the hit that are not cut.
        """
        share = max(self._left, 0) // max(self._hits, 1)
        self._hits -= 1
        left = share - _json_size(base) - _BASE_BYTES
        kept: dict[str, Any] = {}
        cut: list[str] = []
        sizes = {name: _json_size(value) + _json_size(name) + _VALUE_BYTES for name, value in fields.items()}
        for name in sorted(fields, key=lambda each: sizes[each]):
            value, size = fields[name], sizes[name]
            if size > left:
                cut.append(name)
                named = _json_size(name) + _VALUE_BYTES
                left -= named
                value = _cut_value(value, left - named)
                size = _json_size(value) + named
            elif self._max_characters and _count_characters(value) >= self._max_characters:
                cut.append(name)
            kept[name] = value
            left -= size
        self._left -= share - left
        self.is_cut = self.is_cut or bool(cut)
        return {name: kept[name] for name in fields}, [name for name in fields if name in cut]


def _count_characters(value: object) -> int:
    if isinstance(value, list):
        return sum(map(_count_characters, value))
    return len(value) if isinstance(value, str) else 1


def _json_size(value: object) -> int:
    import orjson

    return len(orjson.dumps(value))


def _cut_value(value: Any, size: int) -> Any:
    """Return the start of a value with at most so many bytes as JSON; an empty one when nothing fits."""
    if isinstance(value, list):
        kept: list[Any] = []
        size -= 2
        for each in value:
            needed = _json_size(each) + 1
            if needed > size:
                part = _cut_value(each, size - 1) if isinstance(each, str) else ""
                return [*kept, part] if part else kept
            kept.append(each)
            size -= needed
        return kept
    if not isinstance(value, str):
        return None
    text = value[: max(size - 2, 0)]
    while text and (needed := _json_size(text)) > size:
        text = text[: min(len(text) - 1, int(len(text) * (size / needed)))]
    return text
