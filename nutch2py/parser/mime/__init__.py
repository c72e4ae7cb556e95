"""MIME types: detection and the type table.

Exports: ``mime_types.detect_content_type``, ``mime_types.get_mime_resolver``.
"""
