"""The parser's worker process: client, messages, limits and time budgets.

Exports: ``parse_worker_client.ParseWorkerClient``.
"""
