"""Search results: snippets, passages, facets and collapsing."""
