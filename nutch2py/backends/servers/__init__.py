"""Clients and schemas of Solr, OpenSearch and Elasticsearch.

Exports: ``solr_client.SolrClient``, ``elastic_client.ElasticClient``, ``server_retry.RequestRejectedError``.
"""
