"""The fetch job."""
