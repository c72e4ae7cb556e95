"""Relevance benchmark: crawls, indexes and judges real Chinese pages (docs/ranking.md)."""
