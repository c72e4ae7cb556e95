"""Sitemaps: the parser and the rows it produces.

Exports: ``sitemap_parser.SitemapEntry``, ``sitemap_row_parser.SitemapRowParser``.
"""
