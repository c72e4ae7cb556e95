"""urlfilter-validator: accepts ASCII URLs with an IPv4 address or a host name with a top-level domain.

``http://localhost/`` is rejected, as are a port without digits, user info, and a path with more ``..`` than parent
segments. ``urlfilter.tld.length`` limits the length of the top-level domain. Labels of a host may have ``_``, which
Nutch rejects though such hosts exist (``urlfilter.validator.underscores``).
"""

from __future__ import annotations

import re

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter


def _compile_pattern(label: str) -> re.Pattern[str]:
    """Return the pattern of a valid URL; ``label``: the characters of the labels before the top-level domain."""
    return re.compile(
        r"[A-Za-z]+://"
        rf"(?:([0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}(?=[:/?#]|\Z))|(?:[{label}]+\.)+([A-Za-z][A-Za-z0-9\-]+))(?::[0-9]{{1,5}})?"
        r"(/[\-\w:@&=+,.!/~*'%$;()]*)?(\?[!\"$-~]*)?(?:#[!-~]*)?",
        re.ASCII,
    )


_URL, _URL_WITHOUT_UNDERSCORES = _compile_pattern(r"A-Za-z0-9\-_"), _compile_pattern(r"A-Za-z0-9\-")
_PATH_LIKE = re.compile(r"[\-\w:@&?=+,.!/~*'%$;()]*", re.ASCII)
_DOTS, _SLASHES = re.compile(r"(?=\.\.)"), re.compile(r"(?=//)")


class UrlValidator(URLFilter):
    """Filter by a regular expression and the depth of the path."""

    java_class = "org.apache.nutch.urlfilter.validator.UrlValidator"

    def __init__(self, conf: Configuration) -> None:
        self._max_tld = conf.get_int("urlfilter.tld.length", 0)
        has_underscores = conf.get_bool("urlfilter.validator.underscores", True)
        self._match = _URL.fullmatch if has_underscores else _URL_WITHOUT_UNDERSCORES.fullmatch

    def filter(self, url: str) -> str | None:
        """Return the URL if it is valid, else None."""
        match = self._match(url)
        if match is None:
            return None
        address, tld, path, query = match.groups()
        if path is not None and query is not None:  # in Nutch, a path extends to the last "?" that it may contain
            like = _PATH_LIKE.match(query)
            path += query if like is None or like[0] == query else like[0][: like[0].rfind("?")]
        if address is not None and any(int(part) > 255 for part in address.split(".")):
            return None
        if tld is not None and 2 < self._max_tld < len(tld):
            return None
        return None if path is not None and ".." in path and not _stays_below_root(path) else url


def _stays_below_root(path: str) -> bool:
    dots, doubles = len(_DOTS.findall(path)), len(_SLASHES.findall(path))
    return path.count("/") - doubles - 1 > dots
