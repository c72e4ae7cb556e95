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

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FetchFailure
from nutch2py.fetcher.robots.robots_matcher import RobotsRuleSet, escape_literally, escape_value_literally, robots_path
from nutch2py.url.java_url import resolve_url
from nutch2py.url.url_length import max_url_length

ROBOTS_MAX_BYTES = 500 * 1024
"""What is read of a robots.txt (RFC 9309, 2.5)."""

_ANY_AGENT = "*"
_AGENT_LINE = re.compile(r"user[- ]?agent\s*(?::|\s)\s*(.*)", re.IGNORECASE)
# with the misspellings that Google puts up with
_RULE_LINE = re.compile(
    r"(?:(allow)|disallow|dissallow|dissalow|disalow|diasllow|disallaw)\s*(?::|\s)\s*(.*)", re.IGNORECASE
)
_DELAY_LINE = re.compile(r"crawl[- ]delay\s*(?::|\s)\s*(.*)", re.IGNORECASE)
_SITEMAP_LINE = re.compile(r"site-?maps?(?:\s*+:|\s)\s*+(\S+)", re.IGNORECASE)
_MAX_NUMBER_LENGTH = 32
_AGENT_NAME = re.compile(r"[A-Za-z0-9_.-]*")
_PRODUCT_TOKEN = re.compile(r"[a-z_-]*")
_HTML_TAG = re.compile(r"<(?:!doctype|html|head|body|pre|br)\b", re.IGNORECASE)
_BREAK_TAG = re.compile(r"</?(?:br|p|pre|div|li|tr|title|body|head|html)\b[^<>]*>", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>]*>")
# that of UTF-32 begins with that of UTF-16
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class RobotsLimits:
    """What is taken of a robots.txt at most: ``max_rules`` of a group, ``max_sitemaps``; characters of a sitemap's URL."""

    max_rules: int = 50_000
    max_sitemaps: int = 1_000
    max_url_length: int = 8192

    @classmethod
    def from_conf(cls, conf: Configuration) -> RobotsLimits:
        """Read ``http.robots.rules.max``, ``http.robots.sitemaps.max`` and ``http.url.limit``."""
        return cls(
            max_rules=max(0, conf.get_int("http.robots.rules.max", cls.max_rules)),
            max_sitemaps=max(0, conf.get_int("http.robots.sitemaps.max", cls.max_sitemaps)),
            max_url_length=max_url_length(conf),
        )


def _agent_tokens(name: str) -> set[str]:
    """Return the spellings under which a file may name us: the name, and its product token (letters, "-" and "_")."""
    name = name.strip().lower().partition("/")[0]
    match = _PRODUCT_TOKEN.match(name)
    return {name.split(None, 1)[0] if name else "", match.group() if match else ""} - {""}


def _parse_agent(value: str) -> str:
    """Return the agent that a file names, cut at the first character that a name cannot hold."""
    value = value.strip()
    if value == "*" or value.startswith("* "):
        return _ANY_AGENT
    match = _AGENT_NAME.match(value)
    return match.group().lower() if match else ""


class RobotsRules:
    """The rules for our agent: whether each value allows.

    ``also``: rules that must allow a URL, too. ``crawl_delay_ms``: milliseconds, None when none is given. ``sitemaps``:
    URLs. ``is_deferred``: the file could not be had for now, and its pages are to wait. ``fetch_failure``: why there was no
    answer to the question for it, for which RFC 9309 (2.3.1.4) forbids all for now; its pages fail with it. ``size_bytes``:
    bytes of memory, estimated.
    """

    def __init__(
        self,
        rules: Mapping[str, bool] | None = None,
        sitemaps: Sequence[str] = (),
        *,
        crawl_delay_ms: int | None = None,
        is_deferred: bool = False,
        extra_rules: Mapping[str, bool] | None = None,
        fetch_failure: FetchFailure | None = None,
    ) -> None:
        self.sitemaps, self.crawl_delay_ms = list(sitemaps), crawl_delay_ms
        self.is_deferred, self.fetch_failure = is_deferred, fetch_failure
        groups = [group for group in (rules, extra_rules) if group]
        self._rule_sets = [RobotsRuleSet(group.items()) for group in groups]
        self._literal_rule_sets = [
            RobotsRuleSet((escape_value_literally(value), allow) for value, allow in group.items())
            for group in groups
            if any("%" in value or not value.isascii() for value in group)
        ]
        sets = self._rule_sets + self._literal_rule_sets
        self._wildcard_chars = sum(found.wildcard_chars for found in sets)
        self.size_bytes = 300 + sum(found.size_bytes for found in sets) + sum(100 + len(url) for url in self.sitemaps)

    def match_cost(self, url: str) -> int:
        """Return how many comparisons of a character :meth:`allowed` may take for a URL."""
        return self._wildcard_chars * len(url)

    def is_allowed(self, url: str) -> bool:
        """Tell whether a URL may be fetched.

        Escapes are compared decoded (RFC 9309, 2.2.2); where a file writes escapes, what it allows must be allowed by
        the letter as well (Google's reading), so that neither reading is broken.
        """
        if not self._rule_sets:
            return True
        path = robots_path(url)
        if path.partition("?")[0] == "/robots.txt":
            return True
        if not all(rules.is_allowed(path) for rules in self._rule_sets):
            return False
        if not self._literal_rule_sets:
            return True
        path = robots_path(escape_literally(url))
        return all(rules.is_allowed(path) for rules in self._literal_rule_sets)


ALLOW_ALL = RobotsRules()
_DISALLOW_ALL = {"/": False}
FORBID_ALL = RobotsRules(_DISALLOW_ALL)
DEFER_ALL = RobotsRules(_DISALLOW_ALL, is_deferred=True)


def unreachable_rules(failure: FetchFailure) -> RobotsRules:
    """Return the rules of a site that was asked for its robots.txt and gave no answer."""
    return RobotsRules(_DISALLOW_ALL, fetch_failure=failure)


class _RobotsReader:
    """Reads lines; of the groups only those that mean us or anyone are kept, by token.

    ``first_own_group``: our tokens in the first group that means us.
    """

    def __init__(self, tokens: set[str], most: int) -> None:
        self._tokens, self._max_rules = tokens, most
        self._group: set[str] = set()  # the tokens that are named in it
        self._group_has_rules = False  # whether it has rules: the next agent begins another
        self.first_own_group: set[str] | None = None
        self.rules: dict[str, dict[str, bool]] = {token: {} for token in tokens}
        self.delays: dict[str, tuple[int, float]] = {}  # with the number of the line

    def read_line(self, number: int, line: str) -> None:
        if agent := _AGENT_LINE.match(line):
            if self._group_has_rules:
                self._group, self._group_has_rules = set(), False
            if (token := _parse_agent(agent[1])) in self._tokens:
                self._group.add(token)
                if token != _ANY_AGENT and self.first_own_group is None:
                    self.first_own_group = self._group
        elif rule := _RULE_LINE.match(line):
            self._group_has_rules = True
            for token in self._group if rule[2] else ():
                known = self.rules[token]
                if rule[2] in known:
                    known[rule[2]] |= rule[1] is not None
                elif len(known) < self._max_rules:
                    known[rule[2]] = rule[1] is not None
        elif self._group and (delay := _DELAY_LINE.match(line)) and (seconds := _parse_seconds(delay[1])) is not None:
            self.delays.update(dict.fromkeys(self._group, (number, seconds)))

    def get_delay_ms(self, tokens: set[str]) -> int | None:
        """Return the last delay of any of the tokens in ms."""
        found = [self.delays[token] for token in tokens if token in self.delays]
        return int(max(found)[1] * 1000) if found else None


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text[:_MAX_NUMBER_LENGTH])
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _decode_text(content: bytes) -> str:
    """Return the text of a file, lines ended by LF, without a last line that the limit cut.

    A byte order mark tells the encoding, else it is UTF-8. Tags are taken out of a file that was wrapped in HTML.
    """
    mark, encoding = next((known for known in _BYTE_ORDER_MARKS if content.startswith(known[0])), (b"", "utf-8"))
    text = content[len(mark) : ROBOTS_MAX_BYTES].decode(encoding, "replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(content) > ROBOTS_MAX_BYTES:
        text = text.rpartition("\n")[0]
    if _HTML_TAG.search(text):
        text = _ANY_TAG.sub("", _BREAK_TAG.sub("\n", text)).replace("&amp;", "&")
    return text


def _parse_sitemap(base: str, value: str, limits: RobotsLimits) -> str | None:
    """Return the URL of a sitemap that a file at ``base`` names; None when it is none that may be asked for."""
    if len(value) > limits.max_url_length:
        return None
    try:
        url = resolve_url(base, value) if base else value
    except ValueError:
        return None
    # nor does a line lead from the web to a file
    return (
        url if len(url) <= limits.max_url_length and url.lower().startswith(("http://", "https://", "ftp://")) else None
    )


def parse_robots(
    content: bytes, agents: tuple[str, ...], url: str = "", limits: RobotsLimits | None = None
) -> RobotsRules:
    """Return the rules of a robots.txt at ``url`` for the agent names.

    The groups of the name that counts are merged. Sitemaps may be named relative to ``url``.
    """
    limits = limits or RobotsLimits()
    reader = _RobotsReader({token for name in agents for token in _agent_tokens(name)} | {_ANY_AGENT}, limits.max_rules)
    sitemaps: dict[str, None] = {}
    for number, raw in enumerate(_decode_text(content).split("\n")):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        reader.read_line(number, line)
        if len(sitemaps) < limits.max_sitemaps and (named := _SITEMAP_LINE.match(raw.strip())):
            found = _parse_sitemap(url, named[1], limits)
            if found is not None:
                sitemaps[found] = None
    chosen = next(
        (name for name in agents if reader.first_own_group and reader.first_own_group & _agent_tokens(name)), None
    )
    anyone = reader.rules[_ANY_AGENT]
    if chosen is None:
        return RobotsRules(anyone, [*sitemaps], crawl_delay_ms=reader.get_delay_ms({_ANY_AGENT}))
    own = _agent_tokens(chosen)
    rules = [reader.rules[token] for token in sorted(own)]
    merged = {value: any(group.get(value, False) for group in rules) for group in rules for value in group}
    # a name of several words is no product token: whether a group means it is a guess, so what holds for all holds too
    also = anyone if len(chosen.split()) > 1 else None
    return RobotsRules(merged, [*sitemaps], crawl_delay_ms=reader.get_delay_ms(own), extra_rules=also)
