"""urlfilter-regex: the first rule of regex-urlfilter.txt that matches anywhere in the URL decides.

``+pattern`` accepts, ``-pattern`` rejects, ``#`` starts a comment; a URL that no rule matches is rejected. Rules
between ``> www.example.org`` and ``<`` apply to that host or domain only (Nutch 1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter
from nutch2py.url.java_url import parse_url
from nutch2py.url.regex.regex_complexity import check_regex_complexity
from nutch2py.url.regex.regex_prefilter import Prefilter, build_prefilter
from nutch2py.url.rule_files import RuleFile, read_rules
from nutch2py.url.url_parts import DomainRules


class SignedRule(NamedTuple):
    """A line of a rules file. ``scope`` is the host or domain that it applies to, None for all."""

    number: int
    accepts: bool
    expression: str
    scope: str | None


def parse_signed_rules(rules: RuleFile) -> Iterator[SignedRule]:
    """Yield the rules of a file of ``+`` and ``-`` lines; raise ConfigurationError for any other line."""
    scope: str | None = None
    for number, line in rules.lines():
        first, rest = line[0], line[1:]
        if first == ">":
            scope = rest.strip()
        elif first == "<":
            scope = None
        elif first in "+-":
            yield SignedRule(number, first == "+", rest, scope)
        elif first != " ":  # to Nutch an indented line is a comment
            raise rules.error(number, f"{line!r} starts with neither + nor -")


class _Rule(NamedTuple):
    accepts: bool
    may_match: Prefilter
    matches: Callable[[str], object]
    scope: str | None


class RegexURLFilter(URLFilter):
    """Filter by the first matching rule; a prefilter skips most rules that cannot match a URL."""

    java_class = "org.apache.nutch.urlfilter.regex.RegexURLFilter"

    def __init__(self, conf: Configuration) -> None:
        self._domain_of_host = DomainRules.from_conf(conf).domain_of_host
        rules = read_rules(conf, "urlfilter.regex", "regex-urlfilter.txt")
        signed = [(rule, self._compile(rules, rule)) for rule in parse_signed_rules(rules)]
        check_regex_complexity(conf, rules.name, ((f"line {rule.number}", pattern) for rule, pattern in signed))
        self._rules = [
            _Rule(rule.accepts, build_prefilter(pattern), pattern.search, rule.scope) for rule, pattern in signed
        ]
        self._scoped = any(rule.scope is not None for rule in self._rules)

    @staticmethod
    def _compile(rules: RuleFile, rule: SignedRule) -> re.Pattern[str]:
        pattern = rules.compile(rule.number, rule.expression)
        # a search does not need a leading ".*", which only costs time
        shorter = re.sub(r"^(?:\.\*)+(?![?+*{])", "", rule.expression)
        if shorter != rule.expression:
            pattern = rules.compile(rule.number, shorter)
        return pattern

    def filter(self, url: str) -> str | None:
        """Return the URL if the first rule that matches accepts it, else None."""
        low = url.lower()
        if self._scoped:
            return self._filter_scoped(url, low)
        for accepts, possible, matches, _ in self._rules:
            if possible(url, low) and matches(url):
                return url if accepts else None
        return None

    def _filter_scoped(self, url: str, low: str) -> str | None:
        try:
            host = parse_url(url).host.lower()
        except ValueError:
            host = ""
        scopes = {None, host, self._domain_of_host(host)}
        for rule in self._rules:
            if rule.scope in scopes and rule.may_match(url, low) and rule.matches(url):
                return url if rule.accepts else None
        return None
