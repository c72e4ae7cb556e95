"""The fetch job.

Exports: ``fetch_job.fetch``, ``page_sink.PageSink``, ``address_recheck.reschedule_allowed_pages``.
"""
