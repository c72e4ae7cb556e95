"""parsefilter-regex (Nutch 1): metadata that says whether a page matches an expression."""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage

DEFAULT_RULES_FILE = "regex-parsefilter.txt"


class RegexParseRule(NamedTuple):
    """A rule: the metadata field to set, the source to search (``text`` or ``html``) and the expression."""

    field: str
    source: str
    pattern: re.Pattern[str]


def parse_rules(text: str) -> list[RegexParseRule]:
    r"""Parse lines ``field source expression``; skips empty lines and comments (#).

    >>> [(rule.field, rule.source) for rule in parse_rules("# a comment\nhas_form html <form")]
    [('has_form', 'html')]
    """
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) != 3 or parts[1].lower() not in ("html", "text"):
            raise ConfigurationError(f"parsefilter.regex: line {number} is not 'field html|text expression': {line!r}")
        try:
            rules.append(RegexParseRule(parts[0], parts[1].lower(), re.compile(parts[2].strip())))
        except re.error as error:
            raise ConfigurationError(f"parsefilter.regex: line {number}: {error}: correct the expression") from None
    return rules


class RegexParseFilter(ParseFilter):
    """Sets each rule's field to ``true`` or ``false``. Rules: ``parsefilter.regex.rules``, else ``….regex.file``."""

    java_class = "org.apache.nutch.parsefilter.regex.RegexParseFilter"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        rules = conf.get("parsefilter.regex.rules")
        if rules is None or not rules.strip():
            rules = conf.resource_text(conf.get_trimmed("parsefilter.regex.file", DEFAULT_RULES_FILE)) or ""
        self.rules = parse_rules(rules)

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Set the fields in ``page.metadata``."""
        for rule in self.rules:
            source = document.html if rule.source == "html" else parse.text
            page.metadata[rule.field] = b"true" if rule.pattern.search(source) else b"false"
        return parse
