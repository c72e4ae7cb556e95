"""Evaluation of search quality by relevance judgements.

Exports: ``evaluator.run_evaluation``, ``evaluator.run_trec_evaluation``.
"""
