"""Which other sites may search here from their pages (``search.cors.origins``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.url.idn import to_ascii

_PROPERTY = "search.cors.origins"
_ORIGIN = re.compile(r"https?://[\w.\-\[\]:]+")
_ALL = "*"
_PORTS = {"http": 80, "https": 443}
_REMEMBERED = "7200"  # seconds that a browser remembers what it was allowed; the most that Chromium does


class Origins(NamedTuple):
    """The sites, in lower case; ``*`` is every one."""

    sites: frozenset[str]

    @classmethod
    def of(cls, conf: Configuration) -> Origins:
        """Return what the property says; raise ConfigurationError for what is no site."""
        sites = set[str]()
        for given in conf.get_strings(_PROPERTY):
            site = _ALL if given == _ALL else _as_browsers_write(given.rstrip("/").lower())
            if site is None:
                raise ConfigurationError(f"{_PROPERTY} has {given!r}: write https://www.example.org, or *")
            sites.add(site)
        return cls(frozenset(sites))

    def allowed(self, origin: str) -> str:
        """Return what ``Access-Control-Allow-Origin`` says to a page of ``origin`` (may be ""); "" for nothing."""
        if _ALL in self.sites:
            return _ALL
        return origin if origin.lower() in self.sites else ""

    def headers(self, origin: str) -> dict[str, str]:
        """Return the headers of an answer that a page of ``origin`` asks for."""
        allowed = self.allowed(origin)
        vary = {} if allowed == _ALL or not self.sites else {"Vary": "Origin"}
        # without it a page cannot read when to ask again
        shown = {"Access-Control-Allow-Origin": allowed, "Access-Control-Expose-Headers": "Retry-After"}
        return {**shown, **vary} if allowed else vary

    def preflight(self, origin: str, methods: Iterable[str]) -> dict[str, str]:
        """Return the headers that tell a browser which ``methods`` a page of ``origin`` may ask by, with a key."""
        headers = self.headers(origin)
        if self.allowed(origin):
            del headers["Access-Control-Expose-Headers"]
            headers |= {
                "Access-Control-Allow-Methods": ", ".join(methods),
                "Access-Control-Allow-Headers": "Authorization",
                "Access-Control-Max-Age": _REMEMBERED,
            }
        return headers


def _as_browsers_write(site: str) -> str | None:
    """Return a site as a browser names it: in ASCII, and without the port that its scheme has; None for what is none.

    >>> _as_browsers_write("https://bücher.example:443"), _as_browsers_write("http://[::1]:8080")
    ('https://xn--bcher-kva.example', 'http://[::1]:8080')
    """
    written = to_ascii(site) if _ORIGIN.fullmatch(site) else None
    if written is None:
        return None
    try:
        parts = urlsplit(written)
        port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    except ValueError:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}" if host else None
