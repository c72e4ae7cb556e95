"""Jobs whose services become unavailable for a given time: ``scripts/test outages``."""
