"""Queries on a table: a key range, the fields, and at most one condition on a mark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nutch2py.records.record import RecordField
from nutch2py.url.keys import reverse_host


class KeyRange(NamedTuple):
    """Row keys from ``start`` (included) to ``stop`` (excluded); an empty string leaves that end open."""

    start: str = ""
    stop: str = ""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key >= self.start and (not self.stop or key < self.stop)


def prefix_range(prefix: str) -> KeyRange:
    """Return the range of all keys that start with ``prefix``, which ends in an ASCII character."""
    return KeyRange(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))


def host_range(host: str) -> KeyRange:
    """Return the range of the pages of a host, of every protocol and port; of all hosts for ``""``."""
    host = host.lower()
    if not host:
        return KeyRange()
    return prefix_range(f"{host if host.startswith('[') else reverse_host(host)}:")


class MarkCondition(NamedTuple):
    """Only rows that carry the mark ``name``, with exactly ``value`` unless that is None."""

    name: str
    value: str | None = None


@dataclass(frozen=True)
class TableQuery:
    """Rows of ``range`` that have at least one cell of ``fields`` and match ``mark``.

    ``fields`` None reads all columns. The store checks the mark itself, and returns marks only if ``fields`` contains
    them. Empty ``fields`` with a mark select every row with that mark, without cells; without a mark they select no
    row.
    """

    fields: frozenset[RecordField] | None = None
    range: KeyRange = field(default_factory=KeyRange)
    mark: MarkCondition | None = None

    @classmethod
    def for_fields(cls, fields: Iterable[RecordField], mark: MarkCondition | None = None) -> TableQuery:
        """Return a query for ``fields`` over the whole table."""
        return cls(frozenset(fields), KeyRange(), mark)

    def with_range(self, key_range: KeyRange) -> TableQuery:
        """Return this query over another key range."""
        return replace(self, range=key_range)


def columns_of(fields: Iterable[RecordField]) -> dict[bytes, frozenset[bytes] | None]:
    """Return family -> qualifiers to read (None: the whole family) for the fields of a query."""
    families: dict[bytes, set[bytes] | None] = {}
    for each in fields:
        if each.is_map:
            families[each.family] = None
        else:
            wanted = families.setdefault(each.family, set())
            if wanted is not None:
                wanted.add(each.qualifier)
    return {family: None if wanted is None else frozenset(wanted) for family, wanted in families.items()}
