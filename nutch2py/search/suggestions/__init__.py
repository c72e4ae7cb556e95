"""Suggestions: spelling, prefix terms and completion."""
