"""URLs as browsers read them (WHATWG URL Standard), beside those of ``java.net.URL``, which are Nutch's row keys.

A link is stored as Java resolves it, so that it has the row key of Nutch's tables, unless a browser would request
another URL: ``///host/``, ``https:host``, ``..`` above the root, a fullwidth host. Then it is stored as in a browser.
The parser is url-py (Servo's).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from nutch2py.support.bounded_cache import bounded_cache

if TYPE_CHECKING:
    import url as whatwg

_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]*):", re.IGNORECASE)
# URLs without a host in Java: no two slashes, or two "@" before the path
_NO_HOST = re.compile(r"(?:https?|ftp):(?!//[^/])|[a-z]+://[^/?#@]*@[^/?#@]*@", re.IGNORECASE)
# segments that browsers remove as "." and "..", though Java and row keys keep them
_ESCAPED_DOTS = re.compile(r"(?:[^?#]*/)?(?:%2e\.?|\.?%2e|%2e%2e)(?:[/?#]|\Z)", re.IGNORECASE)
_MANY_SLASHES = re.compile(r"\A[\0- ]*[/\\]{3,}")
_WEB_SCHEMES = frozenset({"http", "https", "ftp"})


def resolve_as_browser(base: str, href: str, resolve: Callable[[str], str]) -> str:
    """Return the absolute URL of a link.

    Args:
        base: An absolute URL.
        href: The link as written in the page.
        resolve: Resolves ``href`` by the rules of ``java.net.URL``; raises ValueError if it is malformed.

    Returns:
        The result of ``resolve`` if browsers read it as the URL that they resolve ``href`` to, or reject ``href``;
        otherwise, and if its path has escaped dot segments (``%2e``), the browsers' URL.

    Raises:
        ValueError: Both reject the link, or its scheme is not one of the web.
    """
    scheme = _SCHEME.match(href)
    if scheme is not None and scheme[1].lower() not in _WEB_SCHEMES:
        return resolve(href)
    expected = join_as_browser(base, href)
    try:
        found = resolve(href)
    except ValueError:
        if expected is None:
            raise
        return expected
    if expected is None or expected == found:
        return found
    is_kept = _is_same_request(expected, found) and not _NO_HOST.match(found)
    return found if is_kept and not has_escaped_dots(found) else expected


def has_escaped_dots(url: str) -> bool:
    """Return whether a path has a segment ``.`` or ``..`` with escaped dots.

    >>> has_escaped_dots("http://h/a/.%2E/b"), has_escaped_dots("http://h/%2ea?/%2e/")
    (True, False)
    """
    return _ESCAPED_DOTS.match(url) is not None


def _is_same_request(browser_url: str, url: str) -> bool:
    """Return whether a browser reads ``url`` as ``browser_url``; fragments are not requested."""
    if browser_url == url:
        return True
    as_read = as_browser_url(url)
    return as_read is not None and as_read.partition("#")[0] == browser_url.partition("#")[0]


def as_browser_url(url: str) -> str | None:
    """Return the URL that a browser requests for an absolute web URL, None if it rejects the URL.

    The host is in ASCII (UTS 46), the path has no dot segments, and all other characters are escaped.

    >>> as_browser_url("http://Bücher.example/a/../b c?é"), as_browser_url("http://a b/")
    ('http://xn--bcher-kva.example/b%20c?%C3%A9', None)
    """
    return join_as_browser(None, url)


@bounded_cache(64, max_key_length=2_048)
def _parse_base(base: str) -> whatwg.URL:
    """Return the parsed URL of a page, against which all its links are resolved."""
    import url as whatwg

    return whatwg.URL.parse(base)


def join_as_browser(base: str | None, href: str) -> str | None:
    """Return the URL of a link as a browser resolves it against ``base``, None if it is no link of the web."""
    import url as whatwg  # takes time, and most commands do not resolve links

    href = _MANY_SLASHES.sub("//", href)  # the library rejects some such references, though browsers ignore the slashes
    try:
        parsed = whatwg.URL.parse(href) if base is None else _parse_base(base).join(href)
    except (whatwg.URLError, ValueError):
        return None
    return str(parsed) if parsed.scheme in _WEB_SCHEMES else None
