"""Results of the product and of BM25 on a collection, and their tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.judged.collection import JudgedCollection
from nutch2py.search.evaluation.ranking_metrics import MetricDifference, compare_rankings
from nutch2py.search.evaluation.trec_metrics import trec_metrics

ROWS = 10
"""Results of a query."""
NDCG, MRR, RECALL = f"ndcg_cut_{ROWS}", "recip_rank", f"recall_{ROWS}"
_HEAD = (
    "collection", "queries", "nDCG@10", "BM25", "difference (95 %)", "hybrid",
    "MRR", "BM25", "recall@10", "BM25", "no hit", "BM25",
)  # fmt: skip


class SystemResult(NamedTuple):
    """Rankings of a system by query id, and the metrics of each."""

    rankings: Mapping[str, Sequence[str]]
    metrics: Mapping[str, Mapping[str, float]]

    @classmethod
    def measure(cls, collection: JudgedCollection, rankings: Mapping[str, Sequence[str]]) -> SystemResult:
        """Return the result of rankings with their metrics."""
        metrics = {
            key: trec_metrics(ranking, collection.judgements.get(key, {}), [ROWS]) for key, ranking in rankings.items()
        }
        return cls(rankings, metrics)

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the queries."""
        return sum(each[metric] for each in self.metrics.values()) / max(len(self.metrics), 1)

    @property
    def empty(self) -> int:
        """Number of queries without a hit."""
        return sum(not ranking for ranking in self.rankings.values())


class Comparison(NamedTuple):
    """The product next to BM25 on the same queries of a collection."""

    collection: JudgedCollection
    product: SystemResult
    baseline: SystemResult
    hybrid: SystemResult | None = None

    def difference(self) -> MetricDifference:
        """Return the mean difference of nDCG@10 with its paired bootstrap interval."""
        keys = [*self.product.metrics]
        return compare_rankings(*([side.metrics[key][NDCG] for key in keys] for side in (self.product, self.baseline)))

    def cells(self) -> list[str]:
        """Return the cells of the table's row."""
        difference = self.difference()
        cells = [self.collection.name, str(len(self.product.rankings))]
        cells += [f"{side.mean(NDCG):.3f}" for side in (self.product, self.baseline)]
        cells.append(f"{difference.mean:+.3f} ({difference.ci_low:+.3f} to {difference.ci_high:+.3f})")
        cells.append(f"{self.hybrid.mean(NDCG):.3f}" if self.hybrid else "")
        for metric in (MRR, RECALL):
            cells += [f"{side.mean(metric):.3f}" for side in (self.product, self.baseline)]
        return [*cells, *(str(side.empty) for side in (self.product, self.baseline))]

    def to_dict(self) -> dict[str, Any]:
        """Return the results of each query."""
        queries = {
            key: {
                "query": self.collection.queries[key],
                "relevant": self.collection.judgements[key],
                "product": {"documents": self.product.rankings[key], **self.product.metrics[key]},
                "bm25": {"documents": self.baseline.rankings[key], **self.baseline.metrics[key]},
                **(
                    {"hybrid": {"documents": self.hybrid.rankings[key], **self.hybrid.metrics[key]}}
                    if self.hybrid
                    else {}
                ),
            }
            for key in self.product.rankings
        }
        return {"collection": self.collection.name, "queries": queries}


def print_head(title: str, columns: Sequence[str] = _HEAD) -> None:
    """Print the head of a Markdown table."""
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 1)}", flush=True)


def print_row(comparison: Comparison) -> None:
    """Print the row of a collection."""
    print(f"| {' | '.join(comparison.cells())} |", flush=True)


def print_changes(comparisons: Sequence[Comparison], before: Path) -> None:
    """Print nDCG@10 of the product beside that of an earlier run (a file of ``-json``), for the queries of both."""
    earlier = {each["collection"]: each["queries"] for each in json.loads(before.read_text(encoding="utf-8"))}
    print_head(
        f"nDCG@10 of the product since {before.name}", ("collection", "queries", "before", "now", "change (95 %)")
    )
    changes: list[float] = []
    for each in comparisons:
        old, new = earlier.get(each.collection.name, {}), each.product.metrics
        keys = [key for key in new if key in old]
        values = [[new[key][NDCG] for key in keys], [old[key]["product"][NDCG] for key in keys]]
        if keys:
            now, then = (sum(each) / len(keys) for each in values)
            change = compare_rankings(*values)
            interval = f"{change.mean:+.3f} ({change.ci_low:+.3f} to {change.ci_high:+.3f})"
            print(f"| {each.collection.name} | {len(keys)} | {then:.3f} | {now:.3f} | {interval} |", flush=True)
            changes.append(change.mean)
    if changes:
        print(f"| **mean** | | | | {sum(changes) / len(changes):+.3f} |", flush=True)


def print_means(comparisons: Sequence[Comparison]) -> None:
    """Print the means over collections, each with the same weight."""
    count = len(comparisons)
    means = [
        sum(getattr(each, side).mean(metric) for each in comparisons) / count
        for metric in (NDCG, MRR, RECALL)
        for side in ("product", "baseline")
    ]
    empty = [sum(getattr(each, side).empty for each in comparisons) for side in ("product", "baseline")]
    queries = sum(len(each.product.rankings) for each in comparisons)
    cells = ["**mean**", str(queries), *(f"{mean:.3f}" for mean in means[:2]), f"{means[0] - means[1]:+.3f}", ""]
    cells += [*(f"{mean:.3f}" for mean in means[2:]), *map(str, empty)]
    print(f"| {' | '.join(cells)} |", flush=True)
