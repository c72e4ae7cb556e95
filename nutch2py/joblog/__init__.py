"""Monitoring data of a crawl: job log, table statistics, overview, and their export as Prometheus metrics.

Exports: ``job_entry.JobEntry``, ``job_recorder.annotate_job``, ``job_log_store.read_entries``,
``table_stats.TableStats``, ``crawl_overview.Overview``.
"""
