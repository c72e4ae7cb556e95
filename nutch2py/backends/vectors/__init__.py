"""Vectors of pages: made once for a text, kept in a file of the index directory, and searched exactly.

Exports: ``page_vectors.PageVectors``, ``vector_store.VectorStore``, ``vector_matrix.VectorMatrix``.
"""
