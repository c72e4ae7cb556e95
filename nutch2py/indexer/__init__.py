"""Indexing: builds documents of pages and sends them to indexes.

Exports: ``document_builder.DocumentBuilder``, ``index_writers.IndexWriters``, ``document_builder.should_index``.
"""
