"""The fetch loop: feeder, politeness, backoff, monitor and the run itself."""
