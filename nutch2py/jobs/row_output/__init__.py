"""Text and machine-readable output of rows."""
