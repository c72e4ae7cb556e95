"""Table statistics: row counts that are available without a table scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class ScoreSummary(NamedTuple):
    """Minimum, mean and maximum of the score over all rows."""

    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True, slots=True)
class TableStats:
    """Row counts of a table at one time.

    Attributes:
        counted_at: Time of the count, ms since 1970.
        rows: Number of rows.
        status: Rows by status, with the names of ``readdb -stats`` (``status_fetched``). ``null`` counts injected rows
            that were never fetched.
        retries: Rows by number of failed fetches since the last success; keys are decimal numbers.
        protocol: Rows by name of the protocol status.
        parse: Rows by name of the parse status.
        score: Minimum, mean and maximum; None for an empty table.
        due: Rows due for fetching, at most :data:`MAX_DUE_COUNT`; None if unknown without a scan.
    """

    counted_at: int
    rows: int
    status: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[str, int] = field(default_factory=dict)
    protocol: Mapping[str, int] = field(default_factory=dict)
    parse: Mapping[str, int] = field(default_factory=dict)
    score: ScoreSummary | None = None
    due: int | None = None


MAX_DUE_COUNT = 100_000
"""Limit up to which due rows are counted."""
