"""A web server whose every answer is scripted, good or broken, on the loopback."""
