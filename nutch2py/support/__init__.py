"""Process-level services that know nothing of crawls: files, caches, retry, logging, formatting."""
