"""Which other sites may search here from their pages (``search.cors.origins``)."""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

_PROPERTY = "search.cors.origins"
_ORIGIN = re.compile(r"https?://[\w.\-\[\]:]+")
_ALL = "*"


class Origins(NamedTuple):
    """The sites, in lower case; ``*`` is every one."""

    sites: frozenset[str]

    @classmethod
    def of(cls, conf: Configuration) -> Origins:
        """Return what the property says; raise ConfigurationError for what is no site."""
        sites = [site.rstrip("/").lower() for site in conf.get_strings(_PROPERTY)]
        for site in sites:
            if site != _ALL and not _ORIGIN.fullmatch(site):
                raise ConfigurationError(f"{_PROPERTY} has {site!r}: write https://www.example.org, or *")
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
        return {"Access-Control-Allow-Origin": allowed, **vary} if allowed else vary
