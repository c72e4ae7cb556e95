"""Jobs whose services go away in their middle, for as long as one says: ``scripts/test outages``."""
