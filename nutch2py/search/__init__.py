"""Search: queries, hits, snippets, facets, spelling correction, suggestions and relevance evaluation.

Exports: ``search_backends.open_search_backend``, ``search_backends.open_searcher_manager``,
``search_backends.SearchBackend``, ``search_schemas.SearchResponse``.
"""
