"""Search: queries, hits, snippets, facets, spelling correction, suggestions and relevance evaluation."""
