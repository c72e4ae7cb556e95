"""Health checks of a crawl: configuration, machine, tables, index, cluster and last jobs."""
