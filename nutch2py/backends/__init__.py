"""Analysis, embedded index and search-server clients: shared by the index writers and the search."""
