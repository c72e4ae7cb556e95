"""Regular expressions for tags as the HTML standard's tokenizer reads them (13.2.5)."""

from __future__ import annotations

HTML_SPACE = "\\t\\n\\f\\r "
"""White space, for use inside a character set."""
ATTRIBUTE_PATTERN = (
    rf"[{HTML_SPACE}/]*+(?:=[^{HTML_SPACE}/>=]*+|[^{HTML_SPACE}/>=]++)"
    rf"(?:[{HTML_SPACE}]*+=[{HTML_SPACE}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{HTML_SPACE}>\"'][^{HTML_SPACE}>]*+)?+)?+"
)
"""An attribute: it ends at white space, "/" or ">" unless its value is quoted."""
