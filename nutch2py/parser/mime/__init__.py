"""MIME types: detection and the type table."""
