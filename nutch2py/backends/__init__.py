"""Analysis, document weights, embedded index and search-server clients: shared by the index writers and the search."""
