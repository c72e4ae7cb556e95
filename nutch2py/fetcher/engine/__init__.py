"""The fetch loop: feeder, extra requests, backoff, monitor and the run itself."""
