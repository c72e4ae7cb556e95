"""Transport of requests: the libcurl handler, the Scrapy engine, and their settings and components."""
