"""Validates URLs as ``java.net.URI`` does: RFC 2396 with all of Unicode except spaces and control characters.

Nutch removes dot segments and empty segments with that class. A URL that the class rejects keeps its path, and so do
the row keys of tables that Nutch wrote.
"""

from __future__ import annotations

import re

from nutch2py.url.java_url import JavaURL

_OTHER = "\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\U0010ffff"


def _run_of(marks: str) -> re.Pattern[str]:
    return re.compile(rf"(?:[A-Za-z0-9_.!~*'(){marks}\-{_OTHER}]|%[0-9A-Fa-f]{{2}})*+")


_PATH = _run_of(":@&=+$,;/")
_URIC = _run_of(r";/?:@&=+$,\[\]")  # query, fragment, and the part after the protocol of a URL without slashes
_REGISTRY = _run_of("$,;:@&=+")
_USERINFO = _run_of(";:&=+$,")


def is_uri(url: JavaURL) -> bool:
    """Return whether ``URL.toURI`` succeeds."""
    path = _PATH if url.authority or url.path.startswith("/") else _URIC
    return (
        _accepts_authority(url)
        and path.fullmatch(url.path) is not None
        and (url.query is None or _URIC.fullmatch(url.query) is not None)
        and (url.ref is None or _URIC.fullmatch(url.ref) is not None)
    )


def _accepts_authority(url: JavaURL) -> bool:
    if url.host.startswith("["):
        return url.userinfo is None or _USERINFO.fullmatch(url.userinfo) is not None
    return _REGISTRY.fullmatch(url.authority or "") is not None
