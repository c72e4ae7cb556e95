"""The readdb command: rows, dumps and statistics."""
