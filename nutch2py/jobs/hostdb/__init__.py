"""Jobs of the host table."""
