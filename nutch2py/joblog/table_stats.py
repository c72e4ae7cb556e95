"""Figures: what is known of the rows of a table without reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class ScoreSummary(NamedTuple):
    """Bounds and mean of a number over all rows."""

    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True, slots=True)
class TableStats:
    """Numbers of rows, as they were at ``counted_at`` (ms since 1970).

    ``rows``: all. ``status``: by the names that ``readdb -stats`` prints, as ``status_fetched``; ``null`` is a row that
    was injected and never fetched. ``retries``: by how often the fetch has failed since, as text. ``protocol``,
    ``parse``: by the names of the protocol status and the parse status. ``score``: None when there is no row.
    ``due``: how many are due for fetching, at most :data:`MAX_DUE_COUNT`; None where that is not known without reading rows.
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
"""Rows that are due are counted up to this number; there may be more."""
