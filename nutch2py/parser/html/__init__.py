"""HTML: DOM, head directives, outlinks, main text and structured data."""
