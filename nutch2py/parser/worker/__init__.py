"""The parser's worker process: client, messages, limits and time budgets."""
