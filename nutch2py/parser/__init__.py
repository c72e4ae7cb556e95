"""Parsers: extract text, title and outlinks from content.

Exports: ``row_parser.RowParser``, ``worker``, ``mime``, ``sitemap``.
"""
