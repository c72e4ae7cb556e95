"""Parses robots.txt and selects the group for this crawler, as RFC 9309 and Google do.

Agent names end at the first character that a product token cannot contain. Only ``allow`` and ``disallow`` end a list
of agents (RFC 9309, 2.2.4); a crawl delay applies to the agents listed so far. With several agent names, the one whose
group comes first in the file wins, as in Nutch 2 (crawler-commons 0.10).

Parsing takes time linear in the length, up to 500 KiB; anything beyond that and the limits of :class:`RobotsLimits` is
ignored. RFC 9309 (2.5) permits this, and Google does the same; disallowing all instead would remove a site from the
index because of a long file.
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
"""Bytes of a robots.txt that are parsed (RFC 9309, 2.5)."""

_ANY_AGENT = "*"
_AGENT_LINE = re.compile(r"user[- ]?agent\s*(?::|\s)\s*(.*)", re.IGNORECASE)
# includes the misspellings that Google accepts
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
# the UTF-32 mark starts with the UTF-16 mark
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class RobotsLimits:
    """Limits of a robots.txt: rules per group, sitemaps, and characters of a sitemap URL."""

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
    """Return the spellings of an agent name: the name, and its product token (letters, "-" and "_")."""
    name = name.strip().lower().partition("/")[0]
    match = _PRODUCT_TOKEN.match(name)
    return {name.split(None, 1)[0] if name else "", match.group() if match else ""} - {""}


def _parse_agent(value: str) -> str:
    """Return the agent of a user-agent line, up to the first invalid character."""
    value = value.strip()
    if value == "*" or value.startswith("* "):
        return _ANY_AGENT
    match = _AGENT_NAME.match(value)
    return match.group().lower() if match else ""


class RobotsRules:
    """The rules of a site for this crawler.

    Args:
        rules: Whether each value allows.
        sitemaps: URLs of sitemaps.
        crawl_delay_ms: Crawl delay in milliseconds, None if unset.
        is_deferred: Whether the file is temporarily unavailable, so that pages wait.
        extra_rules: Rules that must allow a URL as well.
        fetch_failure: Failure to fetch the file, which disallows all for now (RFC 9309, 2.3.1.4); pages fail with it.

    Attributes:
        rule_sets: Rule sets that must all allow a URL; none if everything is allowed.
        size_bytes: Estimated memory.
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
        self.rule_sets = [RobotsRuleSet(group.items()) for group in groups]
        self._literal_rule_sets = [
            RobotsRuleSet((escape_value_literally(value), allow) for value, allow in group.items())
            for group in groups
            if any("%" in value or not value.isascii() for value in group)
        ]
        sets = self.rule_sets + self._literal_rule_sets
        self._wildcard_chars = sum(rule_set.wildcard_chars for rule_set in sets)
        self.size_bytes = (
            300 + sum(rule_set.size_bytes for rule_set in sets) + sum(100 + len(url) for url in self.sitemaps)
        )

    def match_cost(self, url: str) -> int:
        """Return the maximum number of character comparisons of :meth:`is_allowed` for a URL."""
        return self._wildcard_chars * len(url)

    def is_allowed(self, url: str) -> bool:
        """Return whether a URL may be fetched.

        Escapes are compared decoded (RFC 9309, 2.2.2). If the file contains escapes, the URL must also be allowed with
        escapes compared literally (Google's reading), so that neither reading is violated.
        """
        if not self.rule_sets:
            return True
        path = robots_path(url)
        if path.partition("?")[0] == "/robots.txt":
            return True
        if not all(rules.is_allowed(path) for rules in self.rule_sets):
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
    """Return the rules of a site with an unreachable robots.txt."""
    return RobotsRules(_DISALLOW_ALL, fetch_failure=failure)


class _RobotsReader:
    """Reads lines and keeps the groups of this crawler and of ``*``, by token.

    ``first_own_group``: tokens of this crawler in its first group.
    """

    def __init__(self, tokens: set[str], max_rules: int) -> None:
        self._tokens, self._max_rules = tokens, max_rules
        self._group: set[str] = set()  # tokens of the current group
        self._group_has_rules = False  # the next agent line then starts a new group
        self.first_own_group: set[str] | None = None
        self.rules: dict[str, dict[str, bool]] = {token: {} for token in tokens}
        self.delays: dict[str, tuple[int, float]] = {}  # line number and delay in seconds

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
                rules = self.rules[token]
                if rule[2] in rules:
                    rules[rule[2]] |= rule[1] is not None
                elif len(rules) < self._max_rules:
                    rules[rule[2]] = rule[1] is not None
        elif self._group and (delay := _DELAY_LINE.match(line)) and (seconds := _parse_seconds(delay[1])) is not None:
            self.delays.update(dict.fromkeys(self._group, (number, seconds)))

    def get_delay_ms(self, tokens: set[str]) -> int | None:
        """Return the last delay of any of the tokens, in milliseconds."""
        delays = [self.delays[token] for token in tokens if token in self.delays]
        return int(max(delays)[1] * 1000) if delays else None


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text[:_MAX_NUMBER_LENGTH])
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _decode_text(content: bytes) -> str:
    """Return the text of a file with LF line ends, without a last line cut by the limit.

    A byte order mark determines the encoding, else it is UTF-8. Tags are removed from a file wrapped in HTML.
    """
    mark, encoding = next(
        (candidate for candidate in _BYTE_ORDER_MARKS if content.startswith(candidate[0])), (b"", "utf-8")
    )
    text = content[len(mark) : ROBOTS_MAX_BYTES].decode(encoding, "replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(content) > ROBOTS_MAX_BYTES:
        text = text.rpartition("\n")[0]
    if _HTML_TAG.search(text):
        text = _ANY_TAG.sub("", _BREAK_TAG.sub("\n", text)).replace("&amp;", "&")
    return text


def _parse_sitemap(base: str, value: str, limits: RobotsLimits) -> str | None:
    """Return the URL of a sitemap listed by a file at ``base``, or None if it must not be requested."""
    if len(value) > limits.max_url_length:
        return None
    try:
        url = resolve_url(base, value) if base else value
    except ValueError:
        return None
    # a sitemap line must not reach local files
    return (
        url if len(url) <= limits.max_url_length and url.lower().startswith(("http://", "https://", "ftp://")) else None
    )


def parse_robots(
    content: bytes, agents: tuple[str, ...], url: str = "", limits: RobotsLimits | None = None
) -> RobotsRules:
    """Return the rules of a robots.txt at ``url`` for the given agent names.

    Groups of the selected name are merged. Sitemaps may be relative to ``url``.
    """
    limits = limits or RobotsLimits()
    reader = _RobotsReader({token for name in agents for token in _agent_tokens(name)} | {_ANY_AGENT}, limits.max_rules)
    sitemaps: dict[str, None] = {}
    for number, raw in enumerate(_decode_text(content).split("\n")):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        reader.read_line(number, line)
        if len(sitemaps) < limits.max_sitemaps and (match := _SITEMAP_LINE.match(raw.strip())):
            sitemap = _parse_sitemap(url, match[1], limits)
            if sitemap is not None:
                sitemaps[sitemap] = None
    agent = next(
        (name for name in agents if reader.first_own_group and reader.first_own_group & _agent_tokens(name)), None
    )
    wildcard_rules = reader.rules[_ANY_AGENT]
    if agent is None:
        return RobotsRules(wildcard_rules, [*sitemaps], crawl_delay_ms=reader.get_delay_ms({_ANY_AGENT}))
    tokens = _agent_tokens(agent)
    rules = [reader.rules[token] for token in sorted(tokens)]
    merged = {value: any(group.get(value, False) for group in rules) for group in rules for value in group}
    # a name of several words is no product token, so its group is a guess: apply the rules of * as well
    extra_rules = wildcard_rules if len(agent.split()) > 1 else None
    return RobotsRules(merged, [*sitemaps], crawl_delay_ms=reader.get_delay_ms(tokens), extra_rules=extra_rules)
