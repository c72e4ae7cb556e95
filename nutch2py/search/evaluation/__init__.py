"""Evaluation of search quality by relevance judgements."""
