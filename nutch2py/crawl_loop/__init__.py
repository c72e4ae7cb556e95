"""A whole crawl by one command: rounds of jobs, progress display and final summary.

Exports: ``loop.CrawlLoop``, ``crawl_plan.CrawlPlan``, ``progress_view.create_view``, ``end_summary.summary_lines``.
"""
