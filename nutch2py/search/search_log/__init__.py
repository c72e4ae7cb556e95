"""Search log: queries, shown results and clicks, without anything that identifies a person.

The property ``search.log`` turns it on. Rows are in the derived table of the crawl, next to the job log.

Exports: ``search_logger.SearchLogger``, ``search_quality.SearchQuality``.
"""
