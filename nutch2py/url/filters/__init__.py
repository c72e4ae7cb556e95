"""URL filters: plug-ins that accept or reject URLs, and their chain.

Exports: ``url_filters.URLFilters``.
"""
