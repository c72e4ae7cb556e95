"""Monitoring data of a crawl: job log, table statistics, overview, and their export as Prometheus metrics."""
