"""Fetch schedules: when a page is due, and what the outcome of a fetch makes of its row."""
