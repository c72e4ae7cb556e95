"""Parsers: extract text, title and outlinks from content."""
