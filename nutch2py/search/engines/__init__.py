"""Search engines: embedded, Solr and OpenSearch.

Exports: ``embedded_searcher.EmbeddedSearcher``, ``server_searcher.ServerSearcher``.
"""
