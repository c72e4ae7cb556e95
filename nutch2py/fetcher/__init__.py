"""Polite fetching of pages: queues, robots.txt, limits and the transport over libcurl or Scrapy."""
