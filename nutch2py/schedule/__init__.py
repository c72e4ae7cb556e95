"""Fetch schedules: compute when a page is due and update a row after its fetch."""
