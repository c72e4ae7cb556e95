"""Pieces of regular expressions that read tags as the tokenizer of the HTML standard does (13.2.5)."""

from __future__ import annotations

SPACE = "\\t\\n\\f\\r "
"""White space, inside a set of characters."""
ATTRIBUTE = (
    rf"[{SPACE}/]*+(?:=[^{SPACE}/>=]*+|[^{SPACE}/>=]++)"
    rf"(?:[{SPACE}]*+=[{SPACE}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{SPACE}>\"'][^{SPACE}>]*+)?+)?+"
)
"""An attribute: it ends at white space, "/" or ">" unless its value is quoted."""
