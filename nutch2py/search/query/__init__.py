"""Queries: the query language, the plan, synonyms and freshness."""
