"""Clients and schemas of Solr, OpenSearch and Elasticsearch."""
