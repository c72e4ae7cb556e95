"""Fixtures of this package: a real Solr."""

from tests.backends.solr_server import solr

__all__ = ["solr"]
