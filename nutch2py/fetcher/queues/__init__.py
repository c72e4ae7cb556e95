"""Fetch queues: one per host, domain or address, with spill to disk.

Exports: ``fetch_queues.FetchItem``, ``fetch_queues.FetchItemQueues``, ``queue_ids.QueueIdResolver``, ``spill.Spill``.
"""
