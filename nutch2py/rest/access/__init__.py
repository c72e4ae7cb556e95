"""Access control of the REST API: tokens, rate limits, cross-site checks, audit log and allowed properties.

Exports: ``tokens.Role``, ``tokens.TokenStore``, ``audit_log.AuditLog``, ``allowed_properties.check_allowed``.
"""
