"""urlnormalizer-ajax: converts between ``#!state`` and ``?_escaped_fragment_=state`` of the AJAX crawling scheme.

The crawl fetches the second form; the index (scope ``indexer``) shows the first.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.java_url import compose_url, parse_url

_HASH_BANG, _ESCAPED = "#!", "_escaped_fragment_="
_TO_ESCAPE = re.compile(r"[\x00-\x20#%&+\x80-\U0010ffff]")
_PARAMETER = re.compile(rf"(?:^|&){_ESCAPED}(.*)")


class AjaxURLNormalizer(URLNormalizer):
    """Convert URLs to the form of the scope."""

    java_class = "org.apache.nutch.net.urlnormalizer.ajax.AjaxURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        del conf

    def normalize(self, url: str, scope: str) -> str:
        """Return the form of the scope; raise ValueError if a URL to convert is malformed."""
        if scope == "indexer":
            return self._to_hash_bang(url) if _ESCAPED in url else url
        return self._to_escaped(url) if _HASH_BANG in url else url

    @staticmethod
    def _to_escaped(url: str) -> str:
        before, _, fragment = url.partition(_HASH_BANG)
        mark = "?" if parse_url(url).query is None else "&"
        escaped = _TO_ESCAPE.sub(
            lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), fragment
        )
        return f"{before}{mark}{_ESCAPED}{escaped}"

    @staticmethod
    def _to_hash_bang(url: str) -> str:
        parsed = parse_url(url)
        match = _PARAMETER.search(parsed.query or "")
        if match is None or parsed.query is None:
            return url
        query = parsed.query[: match.start()]
        file = f"{parsed.path}?{query}" if query else parsed.path
        return compose_url(parsed.protocol, parsed.host, parsed.port, f"{file}{_HASH_BANG}{unquote_plus(match[1])}")
