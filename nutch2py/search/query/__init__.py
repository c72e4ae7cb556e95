"""Queries: the query language, the plan, synonyms and freshness.

Exports: ``query_plan.QueryPlan``, ``query_plan.SearchOptions``, ``freshness.Freshness``.
"""
