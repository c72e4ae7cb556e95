"""Polite fetching of pages: queues, robots.txt, limits and the transport over libcurl or Scrapy.

Exports: ``fetcher.Fetcher``, ``fetch_options.FetchOptions``, ``page_renderer.PageRenderer``.
"""
