"""urlfilter-fast: deny rules by host and domain, for many thousands of rules, from fast-urlfilter.txt.

A block ``Host www.example.org`` or ``Domain example.org`` (``Domain .`` is every URL) contains lines ``DenyPath
pattern`` and ``DenyPathQuery pattern``; ``.*`` denies all. ``#`` starts a comment anywhere. Rules are looked up by
host, then by each parent domain; the first matching rule rejects the URL, and URLs without a matching rule are
accepted. URLs, paths and queries longer than ``urlfilter.fast.url[.path|.query].max.length`` are rejected. The file may
be gzipped or bzipped.
"""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import URLFilter
from nutch2py.url.java_url import JavaURL, parse_url
from nutch2py.url.regex.regex_complexity import check_regex_complexity
from nutch2py.url.rule_files import RuleFile, read_rules
from nutch2py.url.url_parts import parent_domains

_CATCH_ALL = frozenset({".*", ".?"})


class _Rule(NamedTuple):
    matches: Callable[[str], object] | None  # None: every URL
    with_query: bool


class FastURLFilter(URLFilter):
    """Filter by deny rules of the host and its parent domains."""

    java_class = "org.apache.nutch.urlfilter.fast.FastURLFilter"

    def __init__(self, conf: Configuration) -> None:
        self._max_url = conf.get_int("urlfilter.fast.url.max.length", -1)
        self._max_path = conf.get_int("urlfilter.fast.url.path.max.length", -1)
        self._max_query = conf.get_int("urlfilter.fast.url.query.max.length", -1)
        self._hosts: dict[str, list[_Rule]] = {}
        self._domains: dict[str, list[_Rule]] = {}
        rules = _read_rule_file(conf)
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        self._parse(rules)
        check_regex_complexity(conf, rules.name, self._patterns)
        self._longest_domain = max(map(len, self._domains), default=0)

    def _parse(self, rules: RuleFile) -> None:
        current: list[_Rule] | None = None
        for number, line in rules.lines():
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) < 2 or words[0] not in {"Host", "Domain", "DenyPath", "DenyPathQuery"}:
                raise rules.error(
                    number, f"{line.strip()!r} is not Host, Domain, DenyPath or DenyPathQuery and a value"
                )
            word, value = words[:2]
            if word in {"Host", "Domain"}:
                current = (self._hosts if word == "Host" else self._domains).setdefault(value, [])
            elif current is None:
                raise rules.error(number, f"{word} needs a Host or Domain line before it")
            else:
                matches = None
                if value not in _CATCH_ALL:
                    pattern = rules.compile(number, value)
                    self._patterns.append((f"line {number}", pattern))
                    matches = pattern.search
                current.append(_Rule(matches, word == "DenyPathQuery"))

    def filter(self, url: str) -> str | None:
        """Return the URL, or None if it is too long, malformed or denied."""
        if 0 <= self._max_url < len(url):
            return None
        try:
            parsed = parse_url(url)
        except ValueError:
            return None
        if 0 <= self._max_path < len(parsed.path) or 0 <= self._max_query < len(parsed.query or ""):
            return None
        for rules in self._rules_for(parsed.host):
            if any(_denies(rule, parsed) for rule in rules):
                return None
        return url

    def _rules_for(self, host: str) -> Iterator[list[_Rule]]:
        if host in self._hosts:
            yield self._hosts[host]
        if host in self._domains:
            yield self._domains[host]
        for domain in parent_domains(host, self._longest_domain):
            if domain and domain in self._domains:
                yield self._domains[domain]
        if "." in self._domains:
            yield self._domains["."]


def _denies(rule: _Rule, parsed: JavaURL) -> bool:
    if rule.matches is None:
        return True
    return rule.matches(parsed.file if rule.with_query else parsed.path) is not None


def _read_rule_file(conf: Configuration) -> RuleFile:
    name = conf.get_trimmed("urlfilter.fast.file", "fast-urlfilter.txt")
    decompress = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(Path(name).suffix)
    path = conf.resource(name)
    if decompress is None or path is None or conf.get("urlfilter.fast.rules"):
        return read_rules(conf, "urlfilter.fast", "fast-urlfilter.txt")
    try:
        return RuleFile(str(path), decompress(path.read_bytes()).decode("utf-8"))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}: correct urlfilter.fast.file") from error
