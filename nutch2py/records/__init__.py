"""Rows and documents: records with their fields, the bytes of cells, and what is sent to an index."""
