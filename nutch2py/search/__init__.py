"""Asking an index: queries, hits, snippets, facets, spelling, and how good the answers are."""
