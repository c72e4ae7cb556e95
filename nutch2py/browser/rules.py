"""``browser-rules.txt``: which pages are rendered, and what is waited for. The first rule that matches decides.

A line is ``host NAME WAY [WAIT …]``, ``domain NAME WAY [WAIT …]``, ``url PATTERN WAY [WAIT …]`` or
``all WAY [WAIT …]``.
``WAY`` is ``plain`` (never), ``render`` (always) or ``auto`` (where the fetched page is an empty shell). ``WAIT`` is
``load``, ``idle``, ``selector=CSS``, ``scroll=N`` or ``delay=SECONDS``; they are done in the order of the line, and
``%20`` in a selector is a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote

from nutch2py.browser.settings import SELENIUM
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins import selection
from nutch2py.url.javaurl import parse_url
from nutch2py.url.rule_files import Rules, check_growth, read_rules_file

_MOST_SCROLLS = 1000
_LONGEST_DELAY = 3600.0


class Way(StrEnum):
    """What is done with a page."""

    PLAIN = "plain"
    RENDER = "render"
    AUTO = "auto"


class Wait(NamedTuple):
    """One thing to wait for: ``load``, ``idle``, ``selector``, ``scroll`` or ``delay``, and its value."""

    what: str
    selector: str = ""
    amount: float = 0.0


class Choice(NamedTuple):
    """What a rule says of a page."""

    way: Way
    waits: tuple[Wait, ...]


DEFAULT_WAITS = (Wait("idle"),)


class _Rule(NamedTuple):
    kind: str
    name: str
    pattern: re.Pattern[str] | None
    choice: Choice

    def matches(self, url: str, host: str) -> bool:
        if self.pattern is not None:
            return self.pattern.search(url) is not None
        if self.kind == "domain":
            return host == self.name or host.endswith("." + self.name)
        return self.kind == "all" or host == self.name


class BrowserRules:
    """Chooses what is done with a page; ``browser.pages`` where no rule matches."""

    def __init__(self, conf: Configuration) -> None:
        every = any(map(selection(conf), SELENIUM))
        text = conf.get_trimmed("browser.pages", "auto").lower()
        if text not in set(Way):
            raise ConfigurationError(f"browser.pages is {text!r}: choose one of {', '.join(Way)}")
        self._default = Choice(Way.RENDER if every and text == Way.AUTO else Way(text), DEFAULT_WAITS)
        given, name = conf.get("browser.rules"), "browser.rules.file"
        file = conf.get_trimmed(name, "browser-rules.txt")
        rules = Rules("property browser.rules", given) if given else read_rules_file(conf, name, file)
        self._rules = list(_parsed(rules))
        patterns = [(f"rule {number}", r.pattern) for number, r in enumerate(self._rules, 1) if r.pattern is not None]
        check_growth(conf, rules.name, patterns)

    def choose(self, url: str) -> Choice:
        """Return what is done with a URL."""
        if not self._rules:
            return self._default
        try:
            host = parse_url(url).host.lower()
        except ValueError:
            return Choice(Way.PLAIN, ())
        return next((rule.choice for rule in self._rules if rule.matches(url, host)), self._default)


def _parsed(rules: Rules) -> Iterator[_Rule]:
    for number, line in rules.lines():
        kind, *words = line.split()
        name = "" if kind == "all" or not words else words.pop(0)
        if kind not in ("host", "domain", "url", "all") or not words or words[0] not in set(Way):
            raise rules.error(number, f"{line.strip()!r} is not host, domain, url or all, then {', '.join(Way)}")
        pattern = rules.compile(number, name) if kind == "url" else None
        try:
            waits = tuple(map(_wait, words[1:]))
        except ValueError as error:
            raise rules.error(number, str(error)) from None
        yield _Rule(kind, name.lower(), pattern, Choice(Way(words[0]), waits or DEFAULT_WAITS))


def _wait(word: str) -> Wait:
    """Read one wait word; ValueError says what is wrong with it."""
    what, equals, value = word.partition("=")
    if what in ("load", "idle") and not equals:
        return Wait(what)
    if what == "selector" and value:
        return Wait(what, selector=unquote(value))
    if what in ("scroll", "delay"):
        most = _MOST_SCROLLS if what == "scroll" else _LONGEST_DELAY
        try:
            amount = float(int(value)) if what == "scroll" else float(value)
        except ValueError:
            amount = -1.0
        if 0 <= amount <= most:
            return Wait(what, amount=amount)
    raise ValueError(f"{word!r} is not load, idle, selector=CSS, scroll=N or delay=SECONDS")
