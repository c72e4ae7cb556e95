"""Page signatures for duplicate detection.

Exports: ``simhash.simhash``, ``simhash.split_bands``, ``simhash.hamming_distance``.
"""
