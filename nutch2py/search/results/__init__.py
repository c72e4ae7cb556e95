"""Search results: snippets, passages, facets and collapsing.

Exports: ``search_results.SearchResult``, ``search_results.Hit``, ``facets.FacetCounts``.
"""
