"""Batches in the derived table: lists, states, bulk deletes and the update journal.

Exports: ``batch_lists.BatchListStore``, ``batch_lists.BatchState``, ``cell_compression.compress_cell``.
"""
