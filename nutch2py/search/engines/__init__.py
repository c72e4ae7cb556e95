"""Search engines: embedded, Solr and OpenSearch."""
