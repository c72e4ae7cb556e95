"""Process-level services without knowledge of crawls: files, temporary directories, caches, retry, logging, formatting."""
