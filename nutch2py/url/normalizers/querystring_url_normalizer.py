"""urlnormalizer-querystring: sorts the parameters of a query, so that their order does not make different pages."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.java_url import compose_url, parse_url


class QuerystringURLNormalizer(URLNormalizer):
    """Sort ``a=b`` pairs as text."""

    java_class = "org.apache.nutch.net.urlnormalizer.querystring.QuerystringURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        del conf

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL with its query sorted; raise ValueError if it is malformed."""
        del scope
        parsed = parse_url(url)
        if parsed.query is None:
            return url
        query = "&".join(sorted(parsed.query.rstrip("&").split("&")))
        ref = "" if parsed.ref is None else f"#{parsed.ref}"
        return compose_url(parsed.protocol, parsed.host, parsed.port, f"{parsed.path}?{query}{ref}")
