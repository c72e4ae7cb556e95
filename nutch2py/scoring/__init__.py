"""Scoring plug-ins, run in order by :mod:`nutch2py.scoring.scoring_filters`, and the PageRank arithmetic.

Exports: ``scoring_filters.ScoringFilters``, ``pagerank_model.PageRankModel``.
"""
