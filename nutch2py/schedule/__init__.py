"""Fetch schedules: compute when a page is due and update a row after its fetch.

Exports: ``fetch_schedule.create_fetch_schedule``, ``fetch_schedule.check_fetch_schedule``,
``fetch_transition.apply_fetch``.
"""
