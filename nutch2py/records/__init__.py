"""Rows and documents: records with typed fields, the encoding of cells, and index documents.

Exports: ``webpage.WebPage``, ``webpage.Host``, ``webpage.DerivedRow``, ``record.Record``, ``record.RecordField``,
``document.NutchDocument``.
"""
