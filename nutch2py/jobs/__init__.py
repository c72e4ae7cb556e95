"""The jobs, in the order that a crawl runs them.

Exports: ``job_context.open_job``.
"""
