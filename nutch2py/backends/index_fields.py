"""Names of index fields that the embedded index, Solr and OpenSearch share."""

from __future__ import annotations

TEXT_FIELDS = ("title", "content", "anchor", "url", "host")
"""Fields searched when a query names no field."""

TERMS_PREFIX = "terms_"
"""Prefix of the fields with our terms in Solr and OpenSearch: ``terms_title`` … ``terms_exact``."""

FACET_NAMES = ("host", "path", "type", "lang", "date")
"""Facets. ``path``: ``host/folder/`` and the folders within it; ``date``: year, and ``year-month``."""
FACET_PREFIX = "facet_"
"""Prefix of the fields with facet values."""

SKETCH_FIELD = f"{TERMS_PREFIX}{FACET_PREFIX}near"
"""Field with the sketch of a text (:mod:`nutch2py.backends.analysis.minhash`); ``exact`` has it as ``near=SKETCH``."""

EXACT_FIELDS = frozenset(
    {"site", "type", "lang", "digest", "batchId", "domain", "cache", "cc", "tld", "subcollection", "tag", "feed"}
)
"""Fields that match as a whole, ignoring case: ``type:text/html``. ``site`` is the host and its parent domains."""
