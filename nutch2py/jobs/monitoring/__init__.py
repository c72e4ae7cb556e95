"""Read-only reports: job log, batches, locks, counters and skip reasons.

Exports: ``skip_reasons.iter_skipped_urls``, ``counter_totals.CounterTotals``, ``batch_report.list_open_batches``.
"""
