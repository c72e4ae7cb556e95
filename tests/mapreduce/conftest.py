from tests.indexer.solr_server import solr_server

__all__ = ["solr_server"]
