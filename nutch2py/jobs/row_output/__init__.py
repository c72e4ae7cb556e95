"""Text and machine-readable output of rows.

Exports: ``row_renderer.OutputFormat``, ``row_text.format_status``, ``row_formats.format_csv_line``.
"""
