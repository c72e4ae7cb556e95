"""Batches in the derived table: lists, states, bulk deletes and the update journal."""
