"""urlfilter-automaton: rules in the regular expression language of the dk.brics automaton library.

The lines have the format of urlfilter-regex, but an expression must match the whole URL, and the language differs: it
has no anchors and no back references, ``@`` is any string, ``"text"`` is a literal, ``()`` is the empty string.
Complement ``~``, intersection ``&``, intervals ``<1-9>`` and the empty language ``#`` are not supported.
"""

from __future__ import annotations

import re

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter
from nutch2py.url.filters.regex_url_filter import SignedRule, parse_signed_rules
from nutch2py.url.java_url import parse_url
from nutch2py.url.regex.regex_complexity import check_regex_complexity
from nutch2py.url.rule_files import RuleFile, read_rules
from nutch2py.url.url_parts import DomainRules

_REPEAT = re.compile(r"[?*+]|\{[0-9]+(?:,[0-9]*)?\}")
_CLASS = re.compile(r"\[(\^?)((?:\\.|[^\]\\])+)\]", re.DOTALL)


def translate_automaton(expression: str) -> str:
    """Translate the expression for ``fullmatch`` of :mod:`re`; raise ValueError if it is not supported."""
    out: list[str] = []
    starts: list[int] = []  # index in out of each open group
    at = 0
    atom = -1  # index of the last atom, so that a repeat of a repeat can be put in a group
    while at < len(expression):
        character = expression[at]
        repeat = _REPEAT.match(expression, at)
        if repeat and atom >= 0:
            out[atom:] = ["(?:" + "".join(out[atom:]) + repeat[0] + ")"]
            at = repeat.end()
            continue
        if character in "~&<>#":
            raise ValueError(f"{character} at position {at} is not supported")
        if repeat or (character == ")" and not starts):
            raise ValueError(f"{character} at position {at} has nothing before it")
        if character == "|":
            out.append("|")
            at, atom = at + 1, -1
            continue
        if character == "(":
            starts.append(len(out))
            out.append("(?:")
            at, atom = at + 1, -1
            continue
        if character == ")":
            atom = starts.pop()
            out[atom:] = ["".join(out[atom:]) + ")"]
            at += 1
            continue
        atom = len(out)
        text, at = _read_atom(expression, at)
        out.append(text)
    if starts:
        raise ValueError("a group is not closed")
    return "".join(out)


def _read_atom(expression: str, at: int) -> tuple[str, int]:
    """Return one literal, class, string or wildcard, and the position after it."""
    character = expression[at]
    if character == "[":
        match = _CLASS.match(expression, at)
        if match is None:
            raise ValueError(f"the class at position {at} is not closed")
        items = re.sub(r"\\(.)", lambda found: re.escape(found[1]), match[2])
        items = re.sub(r"(?<!\\)[\[&|~]", r"\\\g<0>", items)
        return f"[{match[1]}{items}]", match.end()
    if character == '"':
        end = expression.find('"', at + 1)
        if end < 0:
            raise ValueError(f"the string at position {at} is not closed")
        return f"(?:{re.escape(expression[at + 1 : end])})", end + 1
    if character == "\\" and at + 1 < len(expression):
        return re.escape(expression[at + 1]), at + 2
    if character == "@":
        return r"(?:[\s\S]*)", at + 1
    return r"[\s\S]" if character == "." else re.escape(character), at + 1


class AutomatonURLFilter(URLFilter):
    """Filter by the first rule of the file that matches the whole URL."""

    java_class = "org.apache.nutch.urlfilter.automaton.AutomatonURLFilter"

    def __init__(self, conf: Configuration) -> None:
        self._domain_of_host = DomainRules.from_conf(conf).domain_of_host
        rules = read_rules(conf, "urlfilter.automaton", "automaton-urlfilter.txt")
        signed = [(rule, self._compile(rules, rule)) for rule in parse_signed_rules(rules)]
        check_regex_complexity(
            conf, rules.name, ((f"line {rule.number}", pattern) for rule, pattern in signed), fullmatch=True
        )
        self._rules = [(rule.accepts, pattern.fullmatch, rule.scope) for rule, pattern in signed]

    @staticmethod
    def _compile(rules: RuleFile, rule: SignedRule) -> re.Pattern[str]:
        try:
            return re.compile(translate_automaton(rule.expression))
        except (ValueError, re.error, OverflowError) as error:
            raise rules.error(
                rule.number, f"{rule.expression!r} is not a usable automaton expression ({error})"
            ) from None

    def filter(self, url: str) -> str | None:
        """Return the URL if the first rule that matches accepts it, else None."""
        scopes: set[str | None] | None = None
        for accepts, matches, scope in self._rules:
            if scope is not None:
                scopes = scopes or self._url_scopes(url)
                if scope not in scopes:
                    continue
            if matches(url):
                return url if accepts else None
        return None

    def _url_scopes(self, url: str) -> set[str | None]:
        try:
            host = parse_url(url).host.lower()
        except ValueError:
            return {None}
        return {None, host, self._domain_of_host(host)}
