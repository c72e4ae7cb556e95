"""Hybrid search: the ranks of words and of vectors as one order.

Exports: ``hybrid_ranker.HybridRanker``.
"""
