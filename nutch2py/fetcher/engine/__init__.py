"""The fetch loop: feeder, robots policy, extra requests, redirects, backoff, monitor and the run itself."""
