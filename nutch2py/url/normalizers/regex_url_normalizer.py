"""urlnormalizer-regex: substitutions by regular expressions, from regex-normalize.xml.

The rules run in the order of the file, each on the result of the previous one. ``urlnormalizer.regex.file.<scope>``
names the file of a scope; other scopes use ``urlnormalizer.regex.file``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree as ET

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.regex.java_regex import compile_java, translate_replacement
from nutch2py.url.regex.regex_complexity import check_regex_complexity
from nutch2py.url.regex.regex_prefilter import Prefilter, build_prefilter
from nutch2py.url.rule_files import RuleFile, read_rules, read_rules_file


class _Rule(NamedTuple):
    may_match: Prefilter
    substitute: Callable[[str, str], str]
    template: str


class RegexURLNormalizer(URLNormalizer):
    """Apply the substitutions of the scope's file."""

    java_class = "org.apache.nutch.net.urlnormalizer.regex.RegexURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._default = _parse_rules(conf, read_rules(conf, "urlnormalizer.regex", "regex-normalize.xml"))
        self._scopes: dict[str, list[_Rule]] = {}

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL with every rule applied once to all its matches."""
        rules = self._scopes.get(scope)
        if rules is None:
            rules = self._scopes[scope] = self._rules_of(scope)
        low = url.lower()
        for possible, substitute, template in rules:
            if possible(url, low):
                changed = substitute(template, url)
                if changed != url:
                    url, low = changed, changed.lower()
        return url

    def _rules_of(self, scope: str) -> list[_Rule]:
        name = f"urlnormalizer.regex.file.{scope}"
        file = self._conf.get_trimmed(name)
        return _parse_rules(self._conf, read_rules_file(self._conf, name, file)) if file else self._default


def _parse_rules(conf: Configuration, rules: RuleFile) -> list[_Rule]:
    try:
        root = ET.fromstring(rules.text)  # noqa: S314 - a file of the operator; expat limits entity expansion
    except ET.ParseError as error:
        raise ConfigurationError(f"{rules.name} is not XML: {error}: repair it (& is written &amp;)") from None
    if root.tag != "regex-normalize":
        raise ConfigurationError(f"{rules.name} starts with <{root.tag}>: its rules belong in <regex-normalize>")
    found, patterns = [], []
    for number, element in enumerate(root.iter("regex"), 1):
        pattern, replacement = element.findtext("pattern"), element.findtext("substitution")
        if not pattern or replacement is None:
            raise ConfigurationError(f"{rules.name}, rule {number}: a <regex> needs a <pattern> and a <substitution>")
        try:
            compiled = compile_java(pattern)
            template = translate_replacement(replacement, compiled.groups)
            compiled.sub(template, "")
            found.append(_Rule(build_prefilter(compiled), compiled.sub, template))
            patterns.append((f"rule {number}", compiled))
        except (ValueError, IndexError, re.error) as error:
            raise ConfigurationError(
                f"{rules.name}, rule {number}: {pattern!r} cannot be used ({error}): correct or remove it"
            ) from None
    check_regex_complexity(conf, rules.name, patterns)
    return found
