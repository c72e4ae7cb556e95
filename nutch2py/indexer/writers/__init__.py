"""Index writers: plug-ins that send documents to an index.

Exports: ``elastic_writer.ElasticIndexWriter``, ``solr_writer.SolrIndexWriter``,
``embedded_writer.EmbeddedIndexWriter``.
"""
