"""Access control of the REST API: tokens, rate limits, cross-site checks, audit log and allowed properties."""
