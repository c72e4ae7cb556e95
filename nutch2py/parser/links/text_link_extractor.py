"""Extracts URLs from plain text (Nutch's OutlinkExtractor)."""

from __future__ import annotations

import re

from nutch2py.interfaces import Outlink

# scheme, colon, at most 333 characters or escapes of a URL, then a fragment. The bound of the scheme keeps the search
# linear in long runs of letters.
_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,120}:[A-Za-z0-9/](?:[A-Za-z0-9$_.+!*,;/?:@&~=-]|%[A-Fa-f0-9]{2}){1,333}"
    r"(?:#(?:[a-zA-Z0-9][a-zA-Z0-9$_.+!*,;/?:@&~=%-]{0,1000}))?"
)


def extract_links(text: str | None, anchor: str = "") -> list[Outlink]:
    """Return the URLs in a text with the given anchor, in order and with repetitions.

    >>> [link.url for link in extract_links("see http://www.nutch.org/index.html, or ftp://example.com")]
    ['http://www.nutch.org/index.html,', 'ftp://example.com']
    """
    if not text or ":" not in text:
        return []
    return [Outlink(match[0], anchor) for match in _URL.finditer(text)]
