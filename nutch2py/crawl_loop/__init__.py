"""A whole crawl by one command: rounds of the jobs, what is seen of it, and what is said at its end."""
