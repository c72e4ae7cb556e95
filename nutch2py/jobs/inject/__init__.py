"""The inject job and its seed files."""
