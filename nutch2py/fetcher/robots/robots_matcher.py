"""Matches URLs against robots.txt rules (RFC 9309, 2.2.2): the longest matching rule wins, ``allow`` over ``disallow``.

Patterns are compared with path and query of a URL, both with normalized escapes; ``*`` matches any characters and a
final ``$`` the end of the URL. Odd cases follow Protego, Scrapy's library; the tests compare both. Protego itself is
not used since its cost is unbounded for a crawler of unknown sites: about 550 bytes per rule, and every wildcard rule
is tried for every URL.

Rules without ``*`` are looked up once per distinct rule length. A wildcard rule is tried only if the last characters
of its longest literal part occur in the URL; matching never backtracks. Rules can be crafted so that all have to be
tried: beyond ``MAX_COST`` the URL is disallowed, the cautious result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import quote

MAX_COST = 200_000_000
"""Pattern characters times URL characters over all rules tried: at most a tenth of a second."""

_GRAM_LENGTH = 4  # characters of the literal piece that indexes a wildcard rule
_MAX_SCANNED_GRAMS = 100  # number of pieces up to which each is searched in the URL
# estimated memory in bytes: rule set, rule, wildcard rule; besides the pattern's characters
_BASE_BYTES, _RULE_BYTES, _WILDCARD_BYTES = 400, 110, 320

_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?]*)?")
_PLAIN_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#%]*(/[A-Za-z0-9_.~/=-]*)")
_PLAIN_PATTERN = re.compile(r"[A-Za-z0-9_.~/=*-]+\$?")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_ESCAPED_BYTE = re.compile(rb"%([0-9a-fA-F]{2})")
_STARS = re.compile(r"\*{2,}")
_ASCII = "".join(map(chr, range(128)))
_INDEX_PAGE = "/index.html"


def _requote(text: str, kept: str) -> str:
    """Return text with normalized escapes: decoded except for ``kept``, then escaped where necessary."""
    if "%" in text:
        keep = kept.encode()

        def decoded(match: re.Match[bytes]) -> bytes:
            byte = bytes.fromhex(match[1].decode())
            return b"%" + match[1].upper() if byte in keep else byte

        text = _ESCAPED_BYTE.sub(decoded, text.encode("utf-8", "replace")).decode("utf-8", "replace")
    return quote(text, safe=kept + "=", errors="replace")


def escape_literally(url: str) -> str:
    """Return a URL with escapes to be compared literally."""
    return _ESCAPE.sub(lambda match: "%25" + match[1].upper(), url)


def escape_value_literally(value: str) -> str:
    """Return a rule's value with escapes, and characters that need one, to be compared literally."""
    return escape_literally(quote(value, safe=_ASCII, errors="replace"))


def robots_path(url: str) -> str:
    """Return the part of a URL that rules match: path and query from the first slash, with normalized escapes."""
    if plain := _PLAIN_URL.fullmatch(url):
        return plain[1]
    url = url.partition("#")[0]
    match = _PATH.match(url)
    path = _requote(url[match.end() :] if match else url, "/%")
    return path if path.startswith("/") else f"/{path}"


def _normalize_pattern(value: str) -> str:
    """Return a rule's value in the form of :func:`robots_path`; ``$`` is kept only as the final anchor."""
    if _PLAIN_PATTERN.fullmatch(value):
        return value
    if value.startswith(("http://", "https://")):  # a full URL as a rule matches only paths that contain it
        value = f"/{value}"
    body = value.removesuffix("$")
    return _requote(body, "/%*") + value[len(body) :]


class RobotsRuleSet:
    """The rules of a group, indexed for matching.

    Args:
        rules: Values, and whether each allows.

    Attributes:
        wildcards: Rank and pattern of the wildcard rules, by the literal piece that indexes them.
        size_bytes: Estimated memory.
        wildcard_chars: Characters of the wildcard patterns; times the URL length, the maximum cost of a match.
    """

    __slots__ = ("_exact", "_lengths", "_prefixes", "size_bytes", "wildcard_chars", "wildcards")

    def __init__(self, rules: Iterable[tuple[str, bool]]) -> None:
        self._prefixes: dict[str, bool] = {}
        self._exact: dict[str, int] = {}  # rank by path
        patterns: dict[str, int] = {}  # rank by pattern
        for value, allow in rules:
            pattern = _normalize_pattern(value)
            self._add_rule(pattern, allow, patterns)
            if pattern.endswith("$"):  # a literal dollar sign may be meant
                self._add_rule(_normalize_pattern(value[:-1] + "%24"), allow, patterns)
            if allow and pattern.endswith(_INDEX_PAGE):  # allowing the index page allows its directory
                self._add_rule(pattern[: 1 - len(_INDEX_PAGE)] + "$", allow, patterns)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self.wildcards: dict[str, list[tuple[int, str]]] = {}
        for pattern, rank in patterns.items():
            gram = max(pattern.removesuffix("$").split("*"), key=len)[-_GRAM_LENGTH:]
            self.wildcards.setdefault(gram, []).append((rank, pattern))
        self.wildcard_chars = sum(map(len, patterns))
        literal_count = len(self._prefixes) + len(self._exact)
        characters = sum(map(len, self._prefixes)) + sum(map(len, self._exact)) + self.wildcard_chars
        self.size_bytes = _BASE_BYTES + characters + _RULE_BYTES * literal_count + _WILDCARD_BYTES * len(patterns)

    def _add_rule(self, pattern: str, allow: bool, patterns: dict[str, int]) -> None:
        rank = 2 * len(pattern) + allow
        if "*" in pattern:
            pattern = _STARS.sub("*", pattern)
            patterns[pattern] = max(patterns.get(pattern, 0), rank)
        elif pattern.endswith("$"):
            self._exact[pattern[:-1]] = max(self._exact.get(pattern[:-1], 0), rank)
        else:
            self._prefixes[pattern] = allow or self._prefixes.get(pattern, False)

    def is_allowed(self, path: str) -> bool:
        """Return whether the rules allow a path of :func:`robots_path`."""
        best = self._exact.get(path, -1)
        for length in self._lengths:
            if length <= len(path) and (allow := self._prefixes.get(path[:length])) is not None:
                best = max(best, 2 * length + allow)
                break
        if self.wildcards:
            cost = 0
            for gram in self.find_grams(path):
                for rank, pattern in self.wildcards[gram]:
                    if rank <= best or len(pattern) - pattern.count("*") - 1 > len(path):
                        continue
                    cost += len(path) * len(pattern)
                    if cost > MAX_COST:
                        return False
                    if _wildcard_matches(pattern, path):
                        best = rank
        return best < 0 or bool(best & 1)

    def find_grams(self, path: str) -> Collection[str]:
        """Return the index pieces of wildcard rules that occur in a path."""
        if len(self.wildcards) <= _MAX_SCANNED_GRAMS:
            return [gram for gram in self.wildcards if gram in path]
        pieces = {
            path[at : at + length] for length in range(1, _GRAM_LENGTH + 1) for at in range(len(path) - length + 1)
        }
        pieces.add("")
        return self.wildcards.keys() & pieces


def _wildcard_matches(pattern: str, path: str) -> bool:
    """Return whether a wildcard pattern matches; each part matches as early as possible, without backtracking."""
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    last = parts.pop()
    at = len(first)
    for part in parts:
        index = path.find(part, at)
        if index < 0:
            return False
        at = index + len(part)
    if pattern.endswith("$"):
        return len(path) - len(last) >= at and path.endswith(last)
    return path.find(last, at) >= 0
