"""What a crawl stands on, looked at part by part: configuration, this machine, tables, the index, the cluster."""
