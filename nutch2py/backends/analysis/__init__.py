"""Text analysis: terms of pages and queries."""
