"""The updatedb job: inverted links and new row values."""
