"""Fixtures of this package: a real Solr, a real OpenSearch."""

from tests.backends.opensearch_server import opensearch
from tests.backends.solr_server import solr

__all__ = ["opensearch", "solr"]
