"""What a robots.txt says to us: the group that counts, chosen as RFC 9309 and Google do, matched by Protego.

Protego is given only the lines of the group that applies, so that the choice of the group is ours: agent names are cut
at the first character that a product token cannot hold, lines of unknown kind do not end a list of agents, and of
several agent names the one whose group stands first in the file counts, as in Nutch 2 (crawler-commons 0.10).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import quote

from protego import Protego

MAX_BYTES = 500 * 1024
"""What is read of a robots.txt at least (RFC 9309, 2.5)."""

_LINE = re.compile(r"\r\n|\r|\n")
_AGENT = re.compile(r"user[- ]?agent\s*(?::|\s)\s*(.*)", re.IGNORECASE)
_RULE = re.compile(
    r"((?:dis|diss|dias)?all?[ao]w|crawl[- ]delay|request[- ]rate|visit[- ]time)\s*(?::|\s)", re.IGNORECASE
)
_SITEMAP = re.compile(r"site-?maps?\s*(?::|\s)\s*(\S+)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_.-]*")
_PRODUCT = re.compile(r"[a-z_-]*")
_ASCII = "".join(map(chr, range(128)))
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")


def _own_tokens(name: str) -> set[str]:
    """Return the spellings under which a file may name us: the name, and its product token (letters, "-" and "_")."""
    name = name.strip().lower().partition("/")[0]
    match = _PRODUCT.match(name)
    return {name.split(None, 1)[0] if name else "", match.group() if match else ""} - {""}


def _file_token(value: str) -> str:
    """Return the agent that a file names, cut at the first character that a name cannot hold."""
    match = _NAME.match(value)
    return match.group().lower() if match else ""


def _literal(text: str) -> str:
    """Make the escapes of a text count as they are written, not as what they stand for."""
    return _ESCAPE.sub(lambda match: "%25" + match.group(1).upper(), text)


class RobotsRules:
    """The rules for our agent. ``crawl_delay``: milliseconds, None when none is given; ``sitemaps``: URLs.

    ``deferred``: the file could not be had for now, and its pages are to wait. ``unreachable``: why there was no answer
    to the question for it, for which RFC 9309 (2.3.1.4) forbids all for now.
    """

    def __init__(
        self,
        lines: Sequence[str] = (),
        sitemaps: Sequence[str] = (),
        deferred: bool = False,
        also: RobotsRules | None = None,
        unreachable: str = "",
    ) -> None:
        self.sitemaps, self.deferred, self._also = list(sitemaps), deferred, also
        self.unreachable = unreachable
        self.crawl_delay: int | None = None
        self._rules = self._strict = None
        if lines:
            text = "\n".join(["User-agent: *", *lines])
            self._rules = Protego.parse(text)
            delay = self._rules.crawl_delay("*")
            self.crawl_delay = None if delay is None else int(delay * 1000)
            if "%" in text or not text.isascii():
                self._strict = Protego.parse(_literal(quote(text, safe=_ASCII)))

    def allowed(self, url: str) -> bool:
        """Tell whether a URL may be fetched.

        Escapes are compared decoded (RFC 9309, 2.2.2); where a file writes escapes, what it allows must be allowed by
        the letter as well (Google's reading), so that neither reading is broken.
        """
        if self._also is not None and not self._also.allowed(url):
            return False
        if self._rules is None:
            return True
        if not self._rules.can_fetch(url, "*"):
            return False
        return self._strict is None or bool(self._strict.can_fetch(_literal(url), "*"))


ALLOW_ALL = RobotsRules()
FORBID_ALL = RobotsRules(["Disallow: /"])
DEFERRED = RobotsRules(["Disallow: /"], deferred=True)


def _groups(text: str) -> Iterator[tuple[set[str], list[str], bool]]:
    """Give the groups of a file: the tokens of its agents, its rule lines, and whether it is for all agents."""
    agents: set[str] = set()
    rules: list[str] = []
    anyone = False
    for raw in _LINE.split(text):
        line = raw.partition("#")[0].strip()
        if agent := _AGENT.match(line):
            if rules:
                yield agents, rules, anyone
                agents, rules, anyone = set(), [], False
            value = agent.group(1).strip()
            if value == "*" or value.startswith("* "):
                anyone = True
            else:
                agents.add(_file_token(value))
        elif _RULE.match(line) and (agents or anyone):
            rules.append(line)
    if agents or anyone:
        yield agents, rules, anyone


@lru_cache(maxsize=4096)
def parse_robots(content: bytes, agents: tuple[str, ...]) -> RobotsRules:
    """Return the rules of a robots.txt for the agent names; the groups of the name that counts are merged."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").removeprefix("\ufeff")
    groups = list(_groups(text))
    chosen = next((name for tokens, _, _ in groups for name in agents if tokens & _own_tokens(name)), None)
    anyones = [line for _, rules, anyone in groups if anyone for line in rules]
    sitemaps = [match.group(1) for line in _LINE.split(text) if (match := _SITEMAP.match(line.strip()))]
    if chosen is None:
        return RobotsRules(anyones, sitemaps)
    own = _own_tokens(chosen)
    lines = [line for tokens, rules, _ in groups if tokens & own for line in rules]
    # a name of several words is no product token: whether a group means it is a guess, so what holds for all holds too
    also = RobotsRules(anyones) if len(chosen.split()) > 1 else None
    return RobotsRules(lines, sitemaps, also=also)
