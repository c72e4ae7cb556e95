"""Sitemaps: the parser and the rows it produces."""
