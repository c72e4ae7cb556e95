"""Fetch queues: one per host, domain or address, with spill to disk."""
