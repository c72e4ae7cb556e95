"""Fixtures of this package: a real Solr."""

from tests.indexer.solr_server import solr

__all__ = ["solr"]
