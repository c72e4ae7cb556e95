"""export: pages of the table as JSON lines, CSV, Parquet, Markdown, WARC or WACZ, for data frames, models and archives.

Tasks write JSON lines on every runner (``export_job``); ``export_formats`` turns them into the files of a format.

Exports: ``export_job.export_pages``, ``export_job.ExportParameters``, ``export_columns.EXPORT_COLUMNS``,
``arrow_tables``.
"""
