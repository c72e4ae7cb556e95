"""Which other sites may search here from their pages (``search.cors.origins``)."""

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
_PREFLIGHT_MAX_AGE = "7200"  # seconds that a browser remembers what it was allowed; the most that Chromium does


class CorsPolicy(NamedTuple):
    """The sites, in lower case; ``*`` is every one."""

    origins: frozenset[str]

    @classmethod
    def from_conf(cls, conf: Configuration) -> CorsPolicy:
        """Return what the property says; raise ConfigurationError for what is no site."""
        sites = set[str]()
        for given in conf.get_strings(_CORS_PROPERTY):
            site = _ANY_ORIGIN if given == _ANY_ORIGIN else _normalize_origin(given.rstrip("/").lower())
            if site is None:
                raise ConfigurationError(f"{_CORS_PROPERTY} has {given!r}: write https://www.example.org, or *")
            sites.add(site)
        return cls(frozenset(sites))

    def allow_origin(self, origin: str) -> str:
        """Return what ``Access-Control-Allow-Origin`` says to a page of ``origin`` (may be ""); "" for nothing."""
        if _ANY_ORIGIN in self.origins:
            return _ANY_ORIGIN
        return origin if origin.lower() in self.origins else ""

    def response_headers(self, origin: str) -> dict[str, str]:
        """Return the headers of an answer that a page of ``origin`` asks for."""
        allowed = self.allow_origin(origin)
        vary = {} if allowed == _ANY_ORIGIN or not self.origins else {"Vary": "Origin"}
        # without it a page cannot read when to ask again
        shown = {"Access-Control-Allow-Origin": allowed, "Access-Control-Expose-Headers": "Retry-After"}
        return {**shown, **vary} if allowed else vary

    def preflight_headers(self, origin: str, methods: Iterable[str]) -> dict[str, str]:
        """Return the headers that tell a browser which ``methods`` a page of ``origin`` may ask by, with a key."""
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
    """Return a site as a browser names it: in ASCII, and without the port that its scheme has; None for what is none.

    >>> _as_browsers_write("https://bücher.example:443"), _as_browsers_write("http://[::1]:8080")
    ('https://xn--bcher-kva.example', 'http://[::1]:8080')
    """
    written = url_to_ascii(origin) if _ORIGIN_PATTERN.fullmatch(origin) else None
    if written is None:
        return None
    try:
        parts = urlsplit(written)
        port = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    except ValueError:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}" if host else None
