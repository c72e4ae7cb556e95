"""Configuration: properties, their bounds, and redaction of secrets.

Exports: ``configuration.Configuration``, ``configuration.data_dir``, ``redaction.redact``,
``property_ranges.NumberRange``.
"""
