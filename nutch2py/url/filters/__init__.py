"""URL filters: plug-ins that accept or reject URLs, and their chain."""
