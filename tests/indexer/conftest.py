"""Fixtures of this package: a real Solr."""

from tests.indexer.solr_server import solr, solr_server

__all__ = ["solr", "solr_server"]
