"""Stores the weight of a document in the embedded index: a bucket, which boosts a query, and a field within it.

:class:`nutch2py.backends.document_weights.DocumentWeights` computes the weight.
"""

from __future__ import annotations

from nutch2py.backends.document_weights import MAX_WEIGHT, MIN_WEIGHT
from nutch2py.backends.embedded_index.index_directory import SCHEMA_VERSION, SCORE_COLUMNS_LAYOUT

WEIGHT_BUCKETS = range(-2, 3)
_MAX_LOG2_FLOAT = 126.0  # approximately log2 of the largest 4-byte float


def bucket_boost(bucket: int, layout: int = SCHEMA_VERSION) -> float:
    """Return the boost of the documents of a bucket: the lowest weight of the bucket.

    From layout 4 on a bucket spans a power of 100 instead of starting at it: most weights are near 1, and can change
    without a change of bucket.
    """
    return 100.0**bucket * (0.1 if layout >= SCORE_COLUMNS_LAYOUT else 1.0)


def weight_to_field(weight: float, bucket: int, layout: int = SCHEMA_VERSION) -> float | None:
    """Return the value of the field ``weight`` for a weight in a bucket; None when the weight is outside the bucket."""
    share = min(max(weight, MIN_WEIGHT), MAX_WEIGHT) / bucket_boost(bucket, layout)
    return 2.0**share - 2.0 if 1.0 <= share <= _MAX_LOG2_FLOAT else None


def split_weight(weight: float, layout: int = SCHEMA_VERSION) -> tuple[int, float]:
    """Return the bucket and the field value of a weight, which together multiply relevance exactly.

    tantivy (0.27) can multiply a score by log2(2 + field), in 4-byte floats and not by less than 1: enough for
    factors from 1 to 100. The bucket contributes the rest, as a boost of the query for its documents.

    >>> split_weight(1.0), split_weight(20.0)
    ((0, 1022.0), (1, 2.0))
    >>> split_weight(1.0, 3), split_weight(0.02, 3), split_weight(300.0, 3), split_weight(0.0, 3)
    ((0, 0.0), (-1, 2.0), (1, 6.0), (-2, 0.0))
    """
    weight = min(max(weight, MIN_WEIGHT), MAX_WEIGHT)
    bucket = max(b for b in WEIGHT_BUCKETS if weight >= bucket_boost(b, layout))
    return bucket, 2.0 ** (weight / bucket_boost(bucket, layout)) - 2.0
