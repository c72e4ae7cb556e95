"""Configuration: properties, their bounds, and redaction of secrets."""
