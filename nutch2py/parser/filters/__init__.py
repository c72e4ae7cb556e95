"""Parse filters: plug-ins that add metadata to a parsed page."""
