"""Collection: pages to serve and crawl, queries in two halves, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nutch2py.search.evaluation.ranking_metrics import RELEVANCE_THRESHOLD, Judgements

Render = Callable[[], str]
"""Renders the HTML of a page."""

TUNE, HELD_OUT = "tune", "held-out"
HALVES = (TUNE, HELD_OUT)


class Collection(NamedTuple):
    """A small web with queries and judgements.

    ``origin``: its seed or commits. ``authority``: whether its judgements distinguish authorities. ``starts``: URLs to
    inject, from which every page is reachable. ``queries``: by half.
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
        """Queries of both halves."""
        return [query for half in HALVES for query in self.queries[half]]

    def relevant(self, query: str) -> int:
        """Return the number of relevant pages of a query."""
        return sum(each.relevance >= RELEVANCE_THRESHOLD for each in self.judgements.get(query, {}).values())

    def fewest_relevant(self) -> int:
        """Return the number of relevant pages of the query with the fewest."""
        return min(map(self.relevant, self.all_queries))


def by_turns(queries: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the queries in two halves, alternately."""
    return {half: queries[start::2] for start, half in enumerate(HALVES)}
