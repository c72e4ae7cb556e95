"""Read-only reports: job log, batches, locks, counters and skip reasons."""
