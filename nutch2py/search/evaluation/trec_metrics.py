"""Metrics of rankings as trec_eval names and computes them: map, P_10, recall_10, recip_rank, ndcg_cut_10 and others.

A grade of at least 1 is relevant. ``ndcg`` uses the grade as gain and log2(rank + 1) as discount (Järvelin, Kekäläinen
2002). A document without judgement counts as not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

CUTS = (5, 10, 20, 100)
"""Numbers of results of P, recall, ndcg_cut and success."""

TABLE = (
    "num_ret", "num_rel", "num_rel_ret", "map", "Rprec", "recip_rank", "ndcg_cut_10", "P_10", "recall_10"
)  # fmt: skip
"""Metrics of the table; JSON has all."""

Grades = Mapping[str, int]
"""Document -> grade."""


def trec_metrics(ranking: Sequence[str], grades: Grades, cuts: Sequence[int] = CUTS) -> dict[str, float]:
    """Return the metrics of one ranking, best document first, by trec_eval's names.

    >>> trec_metrics(["b", "a"], {"a": 1}, cuts=[1])["recip_rank"]
    0.5
    """
    gains = [max(grades.get(document, 0), 0) for document in ranking]
    relevant = [gain > 0 for gain in gains]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    precisions = [sum(relevant[:rank]) / rank for rank, hit in enumerate(relevant, 1) if hit]
    metrics = {
        "num_ret": float(len(ranking)),
        "num_rel": float(len(ideal)),
        "num_rel_ret": float(sum(relevant)),
        "map": sum(precisions) / len(ideal) if ideal else 0.0,
        "Rprec": sum(relevant[: len(ideal)]) / len(ideal) if ideal else 0.0,
        "recip_rank": 1 / (relevant.index(True) + 1) if True in relevant else 0.0,
        "ndcg": _share(_discounted_gain(gains), _discounted_gain(ideal)),
    }
    for cut in cuts:
        hits = sum(relevant[:cut])
        metrics[f"P_{cut}"] = hits / cut
        metrics[f"recall_{cut}"] = hits / len(ideal) if ideal else 0.0
        metrics[f"ndcg_cut_{cut}"] = _share(_discounted_gain(gains[:cut]), _discounted_gain(ideal[:cut]))
        metrics[f"success_{cut}"] = float(hits > 0)
    return metrics


def mean_trec_metrics(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the means over queries, and the sums of the numbers (``num_ret``, ``num_rel``, ``num_rel_ret``)."""
    totals = {name: sum(each[name] for each in scores) for name in (scores[0] if scores else ())}
    means = {name: total if name.startswith("num_") else total / len(scores) for name, total in totals.items()}
    return {"num_q": float(len(scores)), **means}


def format_trec_table(scores: Mapping[str, Mapping[str, float]]) -> str:
    """Return a Markdown table with a line per query, and one with the means (``all``)."""
    means = mean_trec_metrics([*scores.values()])
    lines = [f"| query | {' | '.join(TABLE)} |", "|---|" + "--:|" * len(TABLE)]
    for query, each in [*scores.items(), ("**all**", means)]:
        values = (
            f"{each.get(name, 0):.0f}" if name.startswith("num_") else f"{each.get(name, 0):.4f}" for name in TABLE
        )
        lines.append(f"| {query.replace('|', ' ')} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def _discounted_gain(gains: Iterable[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _share(value: float, best: float) -> float:
    return value / best if best else 0.0
