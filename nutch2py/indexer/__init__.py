"""Indexing: builds documents of pages and sends them to indexes."""
