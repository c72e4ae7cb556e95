"""Metrics of the rankings of a collection, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from bench.ranking.collection import HELD_OUT, Collection
from bench.ranking.crawl import Crawl
from bench.ranking.ranks import Ranks, all_ranks
from bench.ranking.variants import Matches, Text, Weight, matches, ranking
from nutch2py.search.evaluation.ranking_metrics import (
    Judgement,
    MetricDifference,
    RankingMetrics,
    best_metrics,
    compare_rankings,
    measure_ranking,
)

PLACES = (10, 20, 30, 40, 50, 60)
"""The numbers of results in the source paper."""
N = 20

Measure = Callable[[RankingMetrics], float]
QUALITY: Measure = lambda each: each.quality  # noqa: E731
PRECISION: Measure = lambda each: each.precision[max(each.precision)]  # noqa: E731


class Way(NamedTuple):
    """A ranking: text matching and weights."""

    text: Text = Text()
    weight: Weight = Weight()


class Measured:
    """A crawled collection with the rankings of its queries."""

    def __init__(self, crawl: Crawl) -> None:
        self.crawl, self.collection = crawl, crawl.collection
        self._matches: dict[Text, dict[str, Matches]] = {}
        self._rankings: dict[Way, dict[str, list[str]]] = {}
        self.unjudged: dict[tuple[str, str], None] = {}

    @cached_property
    def ranks(self) -> Ranks:
        """PageRank by formula."""
        return all_ranks(self.crawl)

    def ranking(self, way: Way) -> Mapping[str, Sequence[str]]:
        """Return the first results of each query."""
        if way not in self._rankings:
            if way.text not in self._matches:
                self._matches[way.text] = matches(self.crawl, way.text)
            ranks = self.ranks[way.weight.formula] if way.weight.pagerank else {}
            found = self._matches[way.text]
            self._rankings[way] = {
                query: ranking(found[query], way.weight, ranks)[: max(PLACES)] for query in self.collection.all_queries
            }
        return self._rankings[way]

    def scores(self, way: Way, half: str, n: int = N) -> list[RankingMetrics]:
        """Return the metrics of each query of a half."""
        found = self.ranking(way)
        return [self._score(query, found[query], n) for query in self.collection.queries[half]]

    def _score(self, query: str, urls: Sequence[str], n: int) -> RankingMetrics:
        known = self._known(query)
        self.unjudged.update({(query, url): None for url in urls[:n] if url not in known})
        return measure_ranking(urls, known, n)

    def _known(self, query: str) -> Mapping[str, Judgement]:
        return self.collection.judgements.get(query, {})

    def ceilings(self, half: str, n: int = N) -> list[RankingMetrics]:
        """Return the metrics of the best possible order."""
        return [best_metrics(self._known(query), n) for query in self.collection.queries[half]]

    def of(self, queries: Sequence[str], way: Way | None) -> Mapping[int, list[RankingMetrics]]:
        """Return the metrics of queries for each number of results; without a ranking, of the best possible order."""
        if way is None:
            return {n: [best_metrics(self._known(query), n) for query in queries] for n in PLACES}
        found = self.ranking(way)
        return {n: [self._score(query, found[query], n) for query in queries] for n in PLACES}

    def enough(self, half: str, least: int) -> list[str]:
        """Return the queries of a half with at least a number of relevant pages."""
        return [query for query in self.collection.queries[half] if self.collection.relevant(query) >= least]

    def share(self, way: Way, half: str, measure: Measure, n: int = N) -> float:
        """Return the mean of a metric as a share of its ceiling."""
        return total(self.scores(way, half, n), measure) / total(self.ceilings(half, n), measure)

    def compare(self, after: Way, before: Way, measure: Measure, n: int = N) -> tuple[float, MetricDifference]:
        """Return the mean of a metric before, and the gain, over the held-out queries."""
        old, new = ([measure(each) for each in self.scores(way, HELD_OUT, n)] for way in (before, after))
        return sum(old) / len(old), compare_rankings(new, old)


def total(scores: Sequence[RankingMetrics], measure: Measure) -> float:
    """Return the sum of a metric."""
    return sum(measure(each) for each in scores)


def crawled(collection: Collection, crawl: Crawl) -> Measured:
    """Crawl a collection unless that is done, and return it for measurements."""
    crawl.rounds()
    return Measured(crawl)
