"""The embedded index: its directory, locks, lookups and score columns."""
