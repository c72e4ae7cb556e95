"""Figures: what is known of the rows of a table without reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Spread(NamedTuple):
    """Bounds and mean of a number over all rows."""

    least: float
    mean: float
    greatest: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of rows, as they were at ``made`` (ms since 1970).

    ``rows``: all. ``status``: by the names that ``readdb -stats`` prints, as ``status_fetched``; ``null`` is a row that
    was injected and never fetched. ``retries``: by how often the fetch has failed since, as text. ``protocol``,
    ``parse``: by the names of the protocol status and the parse status. ``score``: None when there is no row.
    ``due``: how many are due for fetching, at most :data:`MOST_DUE`; None where that is not known without reading rows.
    """

    made: int
    rows: int
    status: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[str, int] = field(default_factory=dict)
    protocol: Mapping[str, int] = field(default_factory=dict)
    parse: Mapping[str, int] = field(default_factory=dict)
    score: Spread | None = None
    due: int | None = None


MOST_DUE = 100_000
"""Rows that are due are counted up to this number; there may be more."""
