"""A web server on the loopback with scripted responses, good or broken."""
