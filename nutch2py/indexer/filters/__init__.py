"""Indexing filters: plug-ins that add fields to documents."""
