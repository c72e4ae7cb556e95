"""URLs: row keys, normalizers, filters, hosts and domains, partitions.

Exports: ``keys.reverse_url``, ``keys.unreverse_url``, ``url_parts.host_of``,
``normalizers.url_normalizers.URLNormalizers``, ``filters.url_filters.URLFilters``.
"""
