"""Rows and documents: records with typed fields, the encoding of cells, and index documents."""
