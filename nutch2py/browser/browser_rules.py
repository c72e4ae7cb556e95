"""Parses ``browser-rules.txt``: which pages are rendered, and the waits. The first matching rule decides.

A line is ``host NAME WAY [WAIT …]``, ``domain NAME WAY [WAIT …]``, ``url PATTERN WAY [WAIT …]`` or
``all WAY [WAIT …]``. ``WAY`` is ``plain`` (never), ``render`` (always) or ``auto`` (if the fetched page is an app
shell). ``WAIT`` is ``load``, ``idle``, ``selector=CSS``, ``scroll=N`` or ``delay=SECONDS``, in the order of the line;
``%20`` in a selector is a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote

from nutch2py.browser.browser_settings import SELENIUM_PLUGINS
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins.loading import plugin_selector
from nutch2py.url.java_url import parse_url
from nutch2py.url.regex.regex_complexity import check_regex_complexity
from nutch2py.url.rule_files import RuleFile, read_rules_file

_MAX_SCROLLS = 1000
_MAX_DELAY_SECONDS = 3600.0


class RenderMode(StrEnum):
    """Rendering mode of a page."""

    PLAIN = "plain"
    RENDER = "render"
    AUTO = "auto"


class WaitCondition(NamedTuple):
    """A wait: ``load``, ``idle``, ``selector``, ``scroll`` or ``delay``, and its value."""

    kind: str
    selector: str = ""
    value: float = 0.0


class RenderDecision(NamedTuple):
    """Mode and waits of a page."""

    mode: RenderMode
    waits: tuple[WaitCondition, ...]


DEFAULT_WAITS = (WaitCondition("idle"),)


class _RenderRule(NamedTuple):
    kind: str
    name: str
    pattern: re.Pattern[str] | None
    decision: RenderDecision

    def matches(self, url: str, host: str) -> bool:
        if self.pattern is not None:
            return self.pattern.search(url) is not None
        if self.kind == "domain":
            return host == self.name or host.endswith("." + self.name)
        return self.kind == "all" or host == self.name


class BrowserRules:
    """Selects mode and waits of a page; ``browser.pages`` applies if no rule matches."""

    def __init__(self, conf: Configuration) -> None:
        renders_all = any(map(plugin_selector(conf), SELENIUM_PLUGINS))
        text = conf.get_trimmed("browser.pages", "auto").lower()
        if text not in set(RenderMode):
            raise ConfigurationError(f"browser.pages is {text!r}: choose one of {', '.join(RenderMode)}")
        self._default = RenderDecision(
            RenderMode.RENDER if renders_all and text == RenderMode.AUTO else RenderMode(text), DEFAULT_WAITS
        )
        inline_rules, name = conf.get("browser.rules"), "browser.rules.file"
        file = conf.get_trimmed(name, "browser-rules.txt")
        rules = RuleFile("property browser.rules", inline_rules) if inline_rules else read_rules_file(conf, name, file)
        self._rules = list(_parse_rules(rules))
        patterns = [(f"rule {number}", r.pattern) for number, r in enumerate(self._rules, 1) if r.pattern is not None]
        check_regex_complexity(conf, rules.name, patterns)

    def decide(self, url: str) -> RenderDecision:
        """Return mode and waits of a URL."""
        if not self._rules:
            return self._default
        try:
            host = parse_url(url).host.lower()
        except ValueError:
            return RenderDecision(RenderMode.PLAIN, ())
        return next((rule.decision for rule in self._rules if rule.matches(url, host)), self._default)


def _parse_rules(rules: RuleFile) -> Iterator[_RenderRule]:
    for number, line in rules.lines():
        kind, *words = line.split()
        name = "" if kind == "all" or not words else words.pop(0)
        if kind not in ("host", "domain", "url", "all") or not words or words[0] not in set(RenderMode):
            raise rules.error(number, f"{line.strip()!r} is not host, domain, url or all, then {', '.join(RenderMode)}")
        pattern = rules.compile(number, name) if kind == "url" else None
        try:
            waits = tuple(map(_parse_wait, words[1:]))
        except ValueError as error:
            raise rules.error(number, str(error)) from None
        yield _RenderRule(kind, name.lower(), pattern, RenderDecision(RenderMode(words[0]), waits or DEFAULT_WAITS))


def _parse_wait(word: str) -> WaitCondition:
    """Parse a wait; raise ValueError with the problem."""
    kind, equals, value = word.partition("=")
    if kind in ("load", "idle") and not equals:
        return WaitCondition(kind)
    if kind == "selector" and value:
        return WaitCondition(kind, selector=unquote(value))
    if kind in ("scroll", "delay"):
        max_value = _MAX_SCROLLS if kind == "scroll" else _MAX_DELAY_SECONDS
        try:
            amount = float(int(value)) if kind == "scroll" else float(value)
        except ValueError:
            amount = -1.0
        if 0 <= amount <= max_value:
            return WaitCondition(kind, value=amount)
    raise ValueError(f"{word!r} is not load, idle, selector=CSS, scroll=N or delay=SECONDS")
