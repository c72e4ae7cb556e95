"""Results of a fetch: updated rows, the page store and WARC files.

Exports: ``page_store.PageStore``, ``page_updater.PageUpdater``, ``warc.check_warc_dir``.
"""
