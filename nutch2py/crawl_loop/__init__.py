"""A whole crawl by one command: rounds of jobs, progress display and final summary."""
