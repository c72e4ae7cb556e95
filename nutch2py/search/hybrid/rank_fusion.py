"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009) of two orders of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

RANK_CONSTANT = 10
"""The larger, the less the first ranks differ from later ones: 60 in the paper. 10 is better on judged collections."""


class FusedHit(NamedTuple):
    """A document with its ranks, 1 for the first; 0 where an order does not have it."""

    document_id: str
    score: float
    word_rank: int
    vector_rank: int


def rank_score(rank: int, weight: float = 1.0) -> float:
    """Return the score of a rank, 1 for the first one of weight 1; 0 for rank 0.

    >>> rank_score(1), rank_score(12), rank_score(0)
    (1.0, 0.5, 0.0)
    """
    return weight * (RANK_CONSTANT + 1) / (RANK_CONSTANT + rank) if rank else 0.0


def fuse_ranks(word_ids: Sequence[str], vector_ids: Sequence[str], vector_weight: float) -> list[FusedHit]:
    """Return the documents of both orders by the sum of the scores of their ranks; words decide between equal sums.

    >>> [hit.document_id for hit in fuse_ranks(["a", "b"], ["b", "c"], 1.0)]
    ['b', 'a', 'c']
    """
    word_ranks = {each: rank for rank, each in enumerate(word_ids, 1)}
    vector_ranks = {each: rank for rank, each in enumerate(vector_ids, 1)}
    hits = []
    for each in dict.fromkeys((*word_ids, *vector_ids)):
        word_rank, vector_rank = word_ranks.get(each, 0), vector_ranks.get(each, 0)
        score = rank_score(word_rank) + rank_score(vector_rank, vector_weight)
        hits.append(FusedHit(each, score, word_rank, vector_rank))
    return sorted(hits, key=lambda hit: -hit.score)
