"""What a collection is: pages that are served and crawled, queries in two halves, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nutch2py.search.evaluation.ranking_metrics import RELEVANCE_THRESHOLD, Judgements

Render = Callable[[], str]
"""Makes the HTML of a page."""

TUNE, HELD_OUT = "tune", "held-out"
HALVES = (TUNE, HELD_OUT)


class Collection(NamedTuple):
    """A small web that can be asked.

    ``origin``: the seed or the commits that it is made of. ``authority``: whether its judgements tell authorities from
    others. ``starts``: the URLs to inject; every page is reached from them. ``queries``: by half.
    """

    name: str
    origin: str
    authority: bool
    starts: Sequence[str]
    pages: Mapping[str, Render]
    queries: Mapping[str, Sequence[str]]
    judgements: Judgements

    @property
    def all_queries(self) -> list[str]:
        """The queries of both halves."""
        return [query for half in HALVES for query in self.queries[half]]

    def relevant(self, query: str) -> int:
        """Return how many relevant pages a query has."""
        return sum(each.relevance >= RELEVANCE_THRESHOLD for each in self.judgements.get(query, {}).values())

    def fewest_relevant(self) -> int:
        """Return how many relevant pages the query with the fewest of them has."""
        return min(map(self.relevant, self.all_queries))


def by_turns(queries: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the queries in two halves, taken by turns."""
    return {half: queries[start::2] for start, half in enumerate(HALVES)}
