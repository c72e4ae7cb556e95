"""Indexing filters: plug-ins that add fields to documents.

Exports: ``index_basic.page_fetch_time``, ``index_html.decode_page_source``,
``index_pagerank.PageRankIndexingFilter``.
"""
