"""Expensive searches of a server in processes of their own: client, messages and worker.

Exports: ``isolating_searcher.IsolatingSearcherManager``, ``search_metrics.SearchMetrics``.
"""
