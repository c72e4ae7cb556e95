"""Encoders of texts as vectors, for hybrid search.

Exports: ``encoder_selection.open_encoder``.
"""
