"""Limits of the length of a URL; longer URLs are rejected wherever they come from.

:data:`MAX_LENGTH` applies when a URL is parsed or resolved (:mod:`nutch2py.url.java_url`), before any other processing.
The lower ``http.url.limit`` applies in the normalizers, the filters and the fetcher, before a URL is stored or
requested.
"""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration

MAX_LENGTH = 32_800
"""Maximum characters. HBase's longest row key has 32,767 bytes; a URL is a few characters longer than its key."""

_SHOWN_CHARACTERS = 100  # characters of a long URL in a message


def check_length(url: str, limit: int = MAX_LENGTH) -> None:
    """Raise ValueError if ``url`` is longer than ``limit`` characters."""
    if len(url) > limit:
        raise ValueError(f"a URL of {len(url)} characters, the limit is {limit}: {url[:_SHOWN_CHARACTERS]}...")


def max_url_length(conf: Configuration) -> int:
    """Return ``http.url.limit`` in characters, at most ``MAX_LENGTH``, which is also the value for negative limits."""
    limit = conf.get_int("http.url.limit", 8192)
    return min(limit, MAX_LENGTH) if limit >= 0 else MAX_LENGTH
