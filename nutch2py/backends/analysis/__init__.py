"""Text analysis: terms of pages and queries.

Exports: ``analyzer.Analyzer``, ``minhash.compute_sketch``, ``dictionaries.strip_comments``.
"""
