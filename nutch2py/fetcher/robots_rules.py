"""What a robots.txt says to us: the group that counts, chosen as RFC 9309 and Google do.

Agent names are cut at the first character that a product token cannot hold. Only ``allow`` and ``disallow`` end a list
of agents (RFC 9309, 2.2.4); a crawl delay is that of the agents named so far. Of several agent names of ours the one
whose group stands first in the file counts, as in Nutch 2 (crawler-commons 0.10).

A file is read in time that grows with its length, up to 500 KiB; what is beyond, and beyond the limits of
:class:`RobotsLimits`, is not read. RFC 9309 (2.5) lets a crawler stop there, and Google does the same; to forbid all
instead would take a site out of the index for having too much to say.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nutch2py.conf import Configuration
from nutch2py.fetcher.answer import Failure
from nutch2py.fetcher.robots_match import RuleSet, path_of, to_the_letter, value_to_the_letter
from nutch2py.url.javaurl import resolve
from nutch2py.url.length import limit_of

MAX_BYTES = 500 * 1024
"""What is read of a robots.txt (RFC 9309, 2.5)."""

_ANYONE = "*"
_AGENT = re.compile(r"user[- ]?agent\s*(?::|\s)\s*(.*)", re.IGNORECASE)
# with the misspellings that Google puts up with
_RULE = re.compile(
    r"(?:(allow)|disallow|dissallow|dissalow|disalow|diasllow|disallaw)\s*(?::|\s)\s*(.*)", re.IGNORECASE
)
_DELAY = re.compile(r"crawl[- ]delay\s*(?::|\s)\s*(.*)", re.IGNORECASE)
_SITEMAP = re.compile(r"site-?maps?(?:\s*+:|\s)\s*+(\S+)", re.IGNORECASE)
_LONGEST_NUMBER = 32
_NAME = re.compile(r"[A-Za-z0-9_.-]*")
_PRODUCT = re.compile(r"[a-z_-]*")
_HTML = re.compile(r"<(?:!doctype|html|head|body|pre|br)\b", re.IGNORECASE)
_BREAK = re.compile(r"</?(?:br|p|pre|div|li|tr|title|body|head|html)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# that of UTF-32 begins with that of UTF-16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class RobotsLimits:
    """What is taken of a robots.txt at most: ``rules`` of a group, ``sitemaps``; characters of a sitemap's URL."""

    rules: int = 50_000
    sitemaps: int = 1_000
    url: int = 8192

    @classmethod
    def of(cls, conf: Configuration) -> RobotsLimits:
        """Read ``http.robots.rules.max``, ``http.robots.sitemaps.max`` and ``http.url.limit``."""
        return cls(
            rules=max(0, conf.get_int("http.robots.rules.max", cls.rules)),
            sitemaps=max(0, conf.get_int("http.robots.sitemaps.max", cls.sitemaps)),
            url=limit_of(conf),
        )


def _own_tokens(name: str) -> set[str]:
    """Return the spellings under which a file may name us: the name, and its product token (letters, "-" and "_")."""
    name = name.strip().lower().partition("/")[0]
    match = _PRODUCT.match(name)
    return {name.split(None, 1)[0] if name else "", match.group() if match else ""} - {""}


def _file_token(value: str) -> str:
    """Return the agent that a file names, cut at the first character that a name cannot hold."""
    value = value.strip()
    if value == "*" or value.startswith("* "):
        return _ANYONE
    match = _NAME.match(value)
    return match.group().lower() if match else ""


class RobotsRules:
    """The rules for our agent: whether each value allows.

    ``also``: rules that must allow a URL, too. ``crawl_delay``: milliseconds, None when none is given. ``sitemaps``:
    URLs. ``deferred``: the file could not be had for now, and its pages are to wait. ``unreachable``: why there was no
    answer to the question for it, for which RFC 9309 (2.3.1.4) forbids all for now; its pages fail with it. ``size``:
    bytes of memory, estimated.
    """

    def __init__(
        self,
        rules: Mapping[str, bool] | None = None,
        sitemaps: Sequence[str] = (),
        *,
        crawl_delay: int | None = None,
        deferred: bool = False,
        also: Mapping[str, bool] | None = None,
        unreachable: Failure | None = None,
    ) -> None:
        self.sitemaps, self.crawl_delay = list(sitemaps), crawl_delay
        self.deferred, self.unreachable = deferred, unreachable
        groups = [group for group in (rules, also) if group]
        self._decoded = [RuleSet(group.items()) for group in groups]
        self._strict = [
            RuleSet((value_to_the_letter(value), allow) for value, allow in group.items())
            for group in groups
            if any("%" in value or not value.isascii() for value in group)
        ]
        sets = self._decoded + self._strict
        self._wild = sum(found.wild for found in sets)
        self.size = 300 + sum(found.size for found in sets) + sum(100 + len(url) for url in self.sitemaps)

    def work(self, url: str) -> int:
        """Return how many comparisons of a character :meth:`allowed` may take for a URL."""
        return self._wild * len(url)

    def allowed(self, url: str) -> bool:
        """Tell whether a URL may be fetched.

        Escapes are compared decoded (RFC 9309, 2.2.2); where a file writes escapes, what it allows must be allowed by
        the letter as well (Google's reading), so that neither reading is broken.
        """
        if not self._decoded:
            return True
        path = path_of(url)
        if path.partition("?")[0] == "/robots.txt":
            return True
        if not all(rules.allows(path) for rules in self._decoded):
            return False
        if not self._strict:
            return True
        path = path_of(to_the_letter(url))
        return all(rules.allows(path) for rules in self._strict)


ALLOW_ALL = RobotsRules()
_ALL = {"/": False}
FORBID_ALL = RobotsRules(_ALL)
DEFERRED = RobotsRules(_ALL, deferred=True)


def unreachable(why: Failure) -> RobotsRules:
    """Return the rules of a site that was asked for its robots.txt and gave no answer."""
    return RobotsRules(_ALL, unreachable=why)


class _Reader:
    """Reads lines; of the groups only those that mean us or anyone are kept, by token.

    ``first``: our tokens in the first group that means us.
    """

    def __init__(self, tokens: set[str], most: int) -> None:
        self._tokens, self._most = tokens, most
        self._group: set[str] = set()  # the tokens that are named in it
        self._ruled = False  # whether it has rules: the next agent begins another
        self.first: set[str] | None = None
        self.rules: dict[str, dict[str, bool]] = {token: {} for token in tokens}
        self.delays: dict[str, tuple[int, float]] = {}  # with the number of the line

    def read(self, number: int, line: str) -> None:
        if agent := _AGENT.match(line):
            if self._ruled:
                self._group, self._ruled = set(), False
            if (token := _file_token(agent[1])) in self._tokens:
                self._group.add(token)
                if token != _ANYONE and self.first is None:
                    self.first = self._group
        elif rule := _RULE.match(line):
            self._ruled = True
            for token in self._group if rule[2] else ():
                known = self.rules[token]
                if rule[2] in known:
                    known[rule[2]] |= rule[1] is not None
                elif len(known) < self._most:
                    known[rule[2]] = rule[1] is not None
        elif self._group and (delay := _DELAY.match(line)) and (seconds := _seconds(delay[1])) is not None:
            self.delays.update(dict.fromkeys(self._group, (number, seconds)))

    def delay(self, tokens: set[str]) -> int | None:
        """Return the last delay of any of the tokens in ms."""
        found = [self.delays[token] for token in tokens if token in self.delays]
        return int(max(found)[1] * 1000) if found else None


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text[:_LONGEST_NUMBER])
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _text_of(content: bytes) -> str:
    """Return the text of a file, lines ended by LF, without a last line that the limit cut.

    A byte order mark tells the encoding, else it is UTF-8. Tags are taken out of a file that was wrapped in HTML.
    """
    mark, encoding = next((known for known in _MARKS if content.startswith(known[0])), (b"", "utf-8"))
    text = content[len(mark) : MAX_BYTES].decode(encoding, "replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(content) > MAX_BYTES:
        text = text.rpartition("\n")[0]
    if _HTML.search(text):
        text = _TAG.sub("", _BREAK.sub("\n", text)).replace("&amp;", "&")
    return text


def _sitemap(base: str, value: str, limits: RobotsLimits) -> str | None:
    """Return the URL of a sitemap that a file at ``base`` names; None when it is none that may be asked for."""
    if len(value) > limits.url:
        return None
    try:
        url = resolve(base, value) if base else value
    except ValueError:
        return None
    # nor does a line lead from the web to a file
    return url if len(url) <= limits.url and url.lower().startswith(("http://", "https://", "ftp://")) else None


def parse_robots(
    content: bytes, agents: tuple[str, ...], url: str = "", limits: RobotsLimits | None = None
) -> RobotsRules:
    """Return the rules of a robots.txt at ``url`` for the agent names.

    The groups of the name that counts are merged. Sitemaps may be named relative to ``url``.
    """
    limits = limits or RobotsLimits()
    reader = _Reader({token for name in agents for token in _own_tokens(name)} | {_ANYONE}, limits.rules)
    sitemaps: dict[str, None] = {}
    for number, raw in enumerate(_text_of(content).split("\n")):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        reader.read(number, line)
        if len(sitemaps) < limits.sitemaps and (named := _SITEMAP.match(raw.strip())):
            found = _sitemap(url, named[1], limits)
            if found is not None:
                sitemaps[found] = None
    chosen = next((name for name in agents if reader.first and reader.first & _own_tokens(name)), None)
    anyone = reader.rules[_ANYONE]
    if chosen is None:
        return RobotsRules(anyone, [*sitemaps], crawl_delay=reader.delay({_ANYONE}))
    own = _own_tokens(chosen)
    rules = [reader.rules[token] for token in sorted(own)]
    merged = {value: any(group.get(value, False) for group in rules) for group in rules for value in group}
    # a name of several words is no product token: whether a group means it is a guess, so what holds for all holds too
    also = anyone if len(chosen.split()) > 1 else None
    return RobotsRules(merged, [*sitemaps], crawl_delay=reader.delay(own), also=also)
