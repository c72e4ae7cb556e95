"""The embedded index: its directory, locks, lookups and score columns.

Exports: ``index_directory.IndexDirectory``, ``index_lookup.IndexScoreReader``, ``score_columns.replace_scores``.
"""
