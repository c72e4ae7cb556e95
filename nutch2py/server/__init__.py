"""HTTP server and search page."""
