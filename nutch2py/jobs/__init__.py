"""The jobs, in the order that a crawl runs them.."""
