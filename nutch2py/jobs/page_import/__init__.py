"""import: pages of WARC and WACZ files as fetched rows, and lists of URLs as seeds.

Exports: ``import_job.import_pages``, ``import_job.ImportResult``.
"""
