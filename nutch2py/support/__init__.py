"""Process-level services that know nothing of crawls: files, caches, retry, logging, formatting.

Exports: ``reporting.warn``, ``retry.ServiceRetry``, ``bounded_cache.bounded_cache``, ``atomic_files.replace_file``,
``formatting.format_number``.
"""
