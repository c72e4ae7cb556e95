"""Scrapy as the downloader: transport, handlers, settings and components."""
