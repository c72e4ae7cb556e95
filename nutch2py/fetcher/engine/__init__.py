"""The fetch loop: feeder, extra requests, redirects, backoff, monitor and the run itself."""
