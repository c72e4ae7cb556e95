"""Which rule of a robots.txt decides about a URL (RFC 9309, 2.2.2): the longest that matches, ``allow`` of two.

Patterns are compared with the path and query of a URL, both with their escapes in one form; ``*`` stands for any
characters, ``$`` at the end for the end of the URL. What that means in odd cases is what Protego, Scrapy's library,
makes of them, and the tests compare the two. It is not used here because its cost has no bound that a crawler of
strangers' sites could live with: some 550 bytes for a rule, every rule with ``*`` tried for every URL.

Here rules without ``*`` are looked up: one look for each length that a rule has. A rule with ``*`` is tried only when
the last characters of its longest literal part stand in the URL; trying it never goes back over the URL. Of rules made
so that all of them have to be tried there may be too many for one URL: beyond ``_MOST_WORK`` the URL is forbidden, the
cautious answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import quote

_MAX_COST = 200_000_000
"""Characters of patterns times characters of the URL, of all rules tried: a tenth of a second at the worst."""

_GRAM_LENGTH = 4  # characters by which rules with "*" are found
_MAX_SCANNED_GRAMS = 100  # of these pieces: then each is looked for
# what rules take in memory, and each of them beside the characters of its pattern
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
    """Return a text with its escapes in one form: decoded but those of ``kept``, then escaped where they need be."""
    if "%" in text:
        keep = kept.encode()

        def decoded(match: re.Match[bytes]) -> bytes:
            byte = bytes.fromhex(match[1].decode())
            return b"%" + match[1].upper() if byte in keep else byte

        text = _ESCAPED_BYTE.sub(decoded, text.encode("utf-8", "replace")).decode("utf-8", "replace")
    return quote(text, safe=kept + "=", errors="replace")


def escape_literally(url: str) -> str:
    """Return a URL whose escapes count as they are written, not as what they stand for."""
    return _ESCAPE.sub(lambda match: "%25" + match[1].upper(), url)


def escape_value_literally(value: str) -> str:
    """Return the value of a rule so; what it could have escaped counts as escaped."""
    return escape_literally(quote(value, safe=_ASCII, errors="replace"))


def robots_path(url: str) -> str:
    """Return what rules are compared with: path and query, from the first slash, escapes in one form."""
    if plain := _PLAIN_URL.fullmatch(url):
        return plain[1]
    url = url.partition("#")[0]
    match = _PATH.match(url)
    path = _requote(url[match.end() :] if match else url, "/%")
    return path if path.startswith("/") else f"/{path}"


def _normalize_pattern(value: str) -> str:
    """Return the value of a rule in the form of :func:`robots_path`; ``$`` is only the anchor, else it is escaped."""
    if _PLAIN_PATTERN.fullmatch(value):
        return value
    if value.startswith(("http://", "https://")):  # matches a path with that URL in it, whoever wrote it
        value = f"/{value}"
    body = value.removesuffix("$")
    return _requote(body, "/%*") + value[len(body) :]


class RobotsRuleSet:
    """The rules of a group, ready to be asked.

    ``rules``: values, and whether each allows. ``size_bytes``: bytes of memory, estimated. ``wildcard_chars``: characters of the
    patterns with ``*``: times the length of a URL that is the work at most.
    """

    __slots__ = ("_exact", "_lengths", "_prefixes", "_wildcards", "size_bytes", "wildcard_chars")

    def __init__(self, rules: Iterable[tuple[str, bool]]) -> None:
        self._prefixes: dict[str, bool] = {}
        self._exact: dict[str, int] = {}  # rank by path
        patterns: dict[str, int] = {}  # rank by pattern
        for value, allow in rules:
            pattern = _normalize_pattern(value)
            self._add_rule(pattern, allow, patterns)
            if pattern.endswith("$"):  # the sign itself may be meant
                self._add_rule(_normalize_pattern(value[:-1] + "%24"), allow, patterns)
            if allow and pattern.endswith(_INDEX_PAGE):  # who allows the page allows its folder
                self._add_rule(pattern[: 1 - len(_INDEX_PAGE)] + "$", allow, patterns)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._wildcards: dict[str, list[tuple[int, str]]] = {}
        for pattern, rank in patterns.items():
            gram = max(pattern.removesuffix("$").split("*"), key=len)[-_GRAM_LENGTH:]
            self._wildcards.setdefault(gram, []).append((rank, pattern))
        self.wildcard_chars = sum(map(len, patterns))
        looked_up = len(self._prefixes) + len(self._exact)
        characters = sum(map(len, self._prefixes)) + sum(map(len, self._exact)) + self.wildcard_chars
        self.size_bytes = _BASE_BYTES + characters + _RULE_BYTES * looked_up + _WILDCARD_BYTES * len(patterns)

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
        """Tell whether the rules allow a path, as :func:`robots_path` gives it."""
        best = self._exact.get(path, -1)
        for length in self._lengths:
            if length <= len(path) and (allow := self._prefixes.get(path[:length])) is not None:
                best = max(best, 2 * length + allow)
                break
        if self._wildcards:
            work = 0
            for gram in self._find_grams(path):
                for rank, pattern in self._wildcards[gram]:
                    if rank <= best or len(pattern) - pattern.count("*") - 1 > len(path):
                        continue
                    work += len(path) * len(pattern)
                    if work > _MAX_COST:
                        return False
                    if _wildcard_matches(pattern, path):
                        best = rank
        return best < 0 or bool(best & 1)

    def _find_grams(self, path: str) -> Collection[str]:
        """Return the pieces by which rules are found that stand in a path."""
        if len(self._wildcards) <= _MAX_SCANNED_GRAMS:
            return [gram for gram in self._wildcards if gram in path]
        pieces = {
            path[at : at + length] for length in range(1, _GRAM_LENGTH + 1) for at in range(len(path) - length + 1)
        }
        pieces.add("")
        return self._wildcards.keys() & pieces


def _wildcard_matches(pattern: str, path: str) -> bool:
    """Tell whether a pattern with ``*`` matches: each part as early as it can, so that nothing is tried twice."""
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    last = parts.pop()
    at = len(first)
    for part in parts:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if pattern.endswith("$"):
        return len(path) - len(last) >= at and path.endswith(last)
    return path.find(last, at) >= 0
