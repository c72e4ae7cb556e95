"""Transport of requests: the libcurl handler, the Scrapy engine, and their settings and components.

Exports: ``transport.ScrapyTransport``, ``transport.run_with_transport``, ``transport_settings.TransportSettings``.
"""
