"""Job control of the REST API: job processes, schedules, seed lists and configurations."""
