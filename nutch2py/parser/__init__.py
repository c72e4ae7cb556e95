"""Parsers: from content to text, title and outlinks."""
