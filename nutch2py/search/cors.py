"""CORS policy of the search API: sites that may search from their pages (``search.cors.origins``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.url.idn import url_to_ascii

_CORS_PROPERTY = "search.cors.origins"
_ORIGIN_PATTERN = re.compile(r"https?://[\w.\-\[\]:]+")
_ANY_ORIGIN = "*"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PREFLIGHT_MAX_AGE = "7200"  # seconds that a browser caches a preflight; the maximum of Chromium


class CorsPolicy(NamedTuple):
    """The allowed origins, in lower case; ``*`` allows every origin."""

    origins: frozenset[str]

    @classmethod
    def from_conf(cls, conf: Configuration) -> CorsPolicy:
        """Return the policy of a configuration; raise ConfigurationError for an invalid origin."""
        sites = set[str]()
        for entry in conf.get_strings(_CORS_PROPERTY):
            site = _ANY_ORIGIN if entry == _ANY_ORIGIN else _normalize_origin(entry.rstrip("/").lower())
            if site is None:
                raise ConfigurationError(f"{_CORS_PROPERTY} has {entry!r}: write https://www.example.org, or *")
            sites.add(site)
        return cls(frozenset(sites))

    def allow_origin(self, origin: str) -> str:
        """Return the value of ``Access-Control-Allow-Origin`` for an origin, which may be ""; "" for no header."""
        if _ANY_ORIGIN in self.origins:
            return _ANY_ORIGIN
        return origin if origin.lower() in self.origins else ""

    def response_headers(self, origin: str) -> dict[str, str]:
        """Return the headers of a response to a page of ``origin``."""
        allowed = self.allow_origin(origin)
        vary = {} if allowed == _ANY_ORIGIN or not self.origins else {"Vary": "Origin"}
        # Without the exposed header a page cannot read when to retry.
        headers = {"Access-Control-Allow-Origin": allowed, "Access-Control-Expose-Headers": "Retry-After"}
        return {**headers, **vary} if allowed else vary

    def preflight_headers(self, origin: str, methods: Iterable[str]) -> dict[str, str]:
        """Return the preflight headers that allow a page of ``origin`` to use ``methods`` with a key."""
        headers = self.response_headers(origin)
        if self.allow_origin(origin):
            del headers["Access-Control-Expose-Headers"]
            headers |= {
                "Access-Control-Allow-Methods": ", ".join(methods),
                "Access-Control-Allow-Headers": "Authorization",
                "Access-Control-Max-Age": _PREFLIGHT_MAX_AGE,
            }
        return headers


def _normalize_origin(origin: str) -> str | None:
    """Return an origin as browsers send it: in ASCII and without the default port; None when it is invalid.

    >>> _normalize_origin("https://bücher.example:443"), _normalize_origin("http://[::1]:8080")
    ('https://xn--bcher-kva.example', 'http://[::1]:8080')
    """
    ascii_origin = url_to_ascii(origin) if _ORIGIN_PATTERN.fullmatch(origin) else None
    if ascii_origin is None:
        return None
    try:
        parts = urlsplit(ascii_origin)
        port = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    except ValueError:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}" if host else None
