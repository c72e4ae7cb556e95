"""Results of a fetch: updated rows, the page store and WARC files."""
