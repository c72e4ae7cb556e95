"""Ranking metrics by relevance judgements: precision, nDCG, MRR, and the ranking quality of Nutch's source paper.

A line of a judgement file has, separated by tabs, query, URL, relevance R and authority A. R is 1 (answers the query),
.5 (is about it), .1 (mentions it) or 0. A is 1 for an authority on the subject and .3, the default, for another page.
Several lines of one query and document are the votes of several judges: the majority value of R and of A counts, or
the median without a majority. ``#`` starts a comment. A document without judgement counts as not relevant, and the
metric ``unjudged`` counts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

from nutch2py.errors import InputError

RELEVANCE_THRESHOLD = 0.5
"""Minimum R of a hit for precision and MRR."""


class Judgement(NamedTuple):
    """Relevance and authority of a document for a query, both from 0 to 1."""

    relevance: float
    authority: float = 0.3


Judgements = Mapping[str, Mapping[str, Judgement]]
"""Query -> URL -> judgement."""


class RankingMetrics(NamedTuple):
    """The metrics of one query, or means; ``quality`` is a sum over ranks, the others are between 0 and 1."""

    precision: Mapping[int, float]
    quality: float
    ndcg: float
    reciprocal_rank: float
    unjudged: float


def read_queries(path: Path) -> list[str]:
    """Return the queries of a file, one per line, without empty lines and comments (``#``)."""
    lines = (line.strip() for line in read_text(path).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def read_judgements(*paths: Path) -> dict[str, dict[str, Judgement]]:
    """Read judgement files, such as one per judge; raise InputError for an invalid line."""
    votes: dict[str, dict[str, list[Judgement]]] = {}
    lines = [(path, number, line) for path in paths for number, line in enumerate(read_text(path).splitlines(), 1)]
    for path, number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = [part.strip() for part in line.split("\t")]
        try:
            query, url, *values = parts
            judgement = Judgement(*map(float, values))
            if not all(0 <= value <= 1 for value in judgement):
                raise ValueError
        except (ValueError, TypeError):
            raise InputError(f"{path}:{number}: write query, URL, R and A (0 to 1), separated by tabs") from None
        votes.setdefault(query, {}).setdefault(url, []).append(judgement)
    return {query: {url: merge_judgements(each) for url, each in judged.items()} for query, judged in votes.items()}


def merge_judgements(judgements: Sequence[Judgement]) -> Judgement:
    """Merge the judgements of several judges: for R and A the majority value, else the (lower) median.

    >>> merge_judgements([Judgement(1, 1), Judgement(0.5, 1), Judgement(0.5, 0.3)])
    Judgement(relevance=0.5, authority=1)
    >>> merge_judgements([Judgement(1, 1), Judgement(0.1, 0.3)])
    Judgement(relevance=0.1, authority=0.3)
    """
    # A majority value is the median, too.
    return Judgement(*(median_low(each) for each in zip(*judgements, strict=True)))


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8; raise InputError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}: name a text file in UTF-8") from error


def ranking_quality(judged: Sequence[Judgement], n: int) -> float:
    """Return Σ R(i)·A(i)·(n - i + 1)/n over the first ``n`` results, i counted from 1.

    >>> ranking_quality([Judgement(1, 1), Judgement(0.5, 0.3)], 20)
    1.1425
    """
    return sum(each.relevance * each.authority * (n - i) / n for i, each in enumerate(judged[:n]))


def ndcg(relevances: Sequence[float], possible: Sequence[float], n: int) -> float:
    """Return the discounted cumulative gain of the first ``n`` results over that of the best order of ``possible``.

    The gain is R, the discount log2(rank + 1) (Järvelin, Kekäläinen 2002). The value is 0 when nothing is relevant.
    """
    best = _discounted_gain(sorted(possible, reverse=True)[:n])
    return _discounted_gain(relevances[:n]) / best if best else 0.0


def _discounted_gain(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def measure_ranking(urls: Sequence[str], known: Mapping[str, Judgement], n: int = 20) -> RankingMetrics:
    """Return the metrics of one ranking, best first, with precision at 5, 10 and ``n``."""
    judged = [known.get(url, Judgement(0.0, 0.0)) for url in urls[:n]]
    hits = [each.relevance >= RELEVANCE_THRESHOLD for each in judged]
    return RankingMetrics(
        {rank: sum(hits[:rank]) / rank for rank in sorted({5, 10, n}) if rank <= n},
        ranking_quality(judged, n),
        ndcg([each.relevance for each in judged], [each.relevance for each in known.values()], n),
        1 / (hits.index(True) + 1) if True in hits else 0.0,
        float(sum(url not in known for url in urls[:n])),
    )


def best_metrics(known: Mapping[str, Judgement], n: int = 20) -> RankingMetrics:
    """Return the maximum of each metric: that of the best order of the judged documents."""
    best = measure_ranking(sorted(known, key=lambda url: -known[url].relevance), known, n)
    by_quality = sorted(known.values(), key=lambda each: -each.relevance * each.authority)
    return best._replace(quality=ranking_quality(by_quality, n))


def evaluate_queries(
    queries: Sequence[str], judgements: Judgements, search: Callable[[str, int], Sequence[str]], n: int = 20
) -> dict[str, RankingMetrics]:
    """Return the metrics of each query. ``search`` returns the URLs of a query, up to a number."""
    return {query: measure_ranking(search(query, n), judgements.get(query, {}), n) for query in queries}


def mean_metrics(scores: Sequence[RankingMetrics]) -> RankingMetrics:
    """Return the means over queries, 0 without queries."""
    count = max(len(scores), 1)
    ranks = scores[0].precision if scores else {}
    return RankingMetrics(
        {rank: sum(each.precision[rank] for each in scores) / count for rank in ranks},
        sum(each.quality for each in scores) / count,
        sum(each.ndcg for each in scores) / count,
        sum(each.reciprocal_rank for each in scores) / count,
        sum(each.unjudged for each in scores) / count,
    )


def format_metrics_table(scores: Mapping[str, RankingMetrics], best: RankingMetrics | None = None) -> str:
    """Return a Markdown table with a line per query, the means, and the ceiling (the means of the best order)."""
    average = mean_metrics([*scores.values()])
    ranks = [*average.precision]
    head = ["query", *(f"P@{rank}" for rank in ranks), "quality", "nDCG", "MRR", "unjudged"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)]
    ceiling = [] if best is None else [("**ceiling**", best)]
    for name, each in [*scores.items(), ("**mean**", average), *ceiling]:
        values = [f"{each.precision[rank]:.3f}" for rank in ranks]
        values += [f"{each.quality:.3f}", f"{each.ndcg:.3f}", f"{each.reciprocal_rank:.3f}", f"{each.unjudged:g}"]
        lines.append(f"| {name.replace('|', ' ')} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


class MetricDifference(NamedTuple):
    """Difference of a metric between two rankings of the same queries, as a mean.

    ``ci_low`` and ``ci_high`` bound the middle 95 % of the means of resampled queries. ``p_value``: share of
    differences at least as large when the rankings are swapped at random for each query.
    """

    mean: float
    ci_low: float
    ci_high: float
    p_value: float


def compare_rankings(
    better: Sequence[float], worse: Sequence[float], draws: int = 10_000, seed: int = 1
) -> MetricDifference:
    """Compare a metric of two rankings, query by query: bootstrap interval, two-sided randomization test (Fisher).

    >>> compare_rankings([0.5, 1.0, 0.75], [0.5, 0.5, 0.5]).mean
    0.25
    """
    import numpy as np

    differences = np.asarray(better, dtype=np.float64) - np.asarray(worse, dtype=np.float64)
    if not len(differences):
        return MetricDifference(0.0, 0.0, 0.0, 1.0)
    draw = np.random.default_rng(seed)
    resampled = differences[draw.integers(0, len(differences), (draws, len(differences)))].mean(axis=1)
    swapped = (differences * draw.choice([-1.0, 1.0], (draws, len(differences)))).mean(axis=1)
    low, high = np.quantile(resampled, (0.025, 0.975))
    mean_difference = float(differences.mean())
    # Sums of the same numbers in another order may differ in the last bits.
    as_great = np.abs(swapped) >= abs(mean_difference) - 1e-12
    return MetricDifference(mean_difference, float(low), float(high), float(as_great.mean()))
