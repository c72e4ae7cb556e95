"""How long a URL may be. A longer one is no URL, wherever it came from, and nothing else looks at it.

Two limits: :data:`MAX_LENGTH` holds where a URL is read or resolved (:mod:`nutch2py.url.java_url`), which is before
anything else can be done with it; ``http.url.limit``, which is lower, where one enters the table or is asked for: in
the normalizers, the filters and the fetcher.
"""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration

MAX_LENGTH = 32_800
"""Characters. HBase's longest row key has 32,767 bytes; a URL has a few characters more than its key."""

_SHOWN_CHARACTERS = 100  # characters of a long URL in a message


def check_length(url: str, limit: int = MAX_LENGTH) -> None:
    """Raise ValueError when ``url`` is longer than ``limit`` characters."""
    if len(url) > limit:
        raise ValueError(f"a URL of {len(url)} characters, the limit is {limit}: {url[:_SHOWN_CHARACTERS]}...")


def max_url_length(conf: Configuration) -> int:
    """Return the characters that ``http.url.limit`` allows, at most ``MAX_LENGTH``; any negative value means that."""
    limit = conf.get_int("http.url.limit", 8192)
    return min(limit, MAX_LENGTH) if limit >= 0 else MAX_LENGTH
