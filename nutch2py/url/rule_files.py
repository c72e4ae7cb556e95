"""The rule files of normalizers and filters: where their text comes from, and how an error in them is told.

Expressions that can take much longer than their URL is long are named when they are read
(``urlfilter.regex.unsafe``): a page can hold a link that was made for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.support.reporting import Reporter, current_reporter, warn
from nutch2py.url.regex.java_regex import compile_java
from nutch2py.url.regex.regex_complexity import RegexComplexity, estimate_complexity


class RuleFile(NamedTuple):
    """The text of rules and its name for messages: a path, or the property that holds the text."""

    name: str
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield every line that is neither blank nor a ``#`` comment, with its number; space at the ends is kept."""
        for number, line in enumerate(self.text.split("\n"), 1):
            line = line.removesuffix("\r")
            if line.strip() and not line.startswith("#"):
                yield number, line

    def error(self, number: int, reason: str) -> ConfigurationError:
        """Return the error of a line, with the file and the number to look at."""
        return ConfigurationError(f"{self.name}, line {number}: {reason}: correct or remove the rule")

    def compile(self, number: int, pattern: str) -> re.Pattern[str]:
        """Compile a Java pattern of a line."""
        try:
            return compile_java(pattern)
        except ValueError as error:
            raise self.error(number, f"{pattern!r} is not a usable regular expression ({error})") from None


def check_regex_complexity(
    conf: Configuration, name: str, patterns: Iterable[tuple[str, re.Pattern[str]]], *, fullmatch: bool = False
) -> None:
    """Name the patterns whose time can grow faster than a URL; each comes with its place, as ``line 7``.

    ``urlfilter.regex.unsafe`` says how: ``warn``, or ``refuse`` as a ConfigurationError. ``fullmatch``: they have to
    match the whole of a URL.
    """
    mode = conf.get_trimmed("urlfilter.regex.unsafe", "warn").lower()
    if mode not in {"warn", "refuse"}:
        raise ConfigurationError(f"property urlfilter.regex.unsafe is {mode!r}: set it to warn or refuse")
    grown = [(place, estimate_complexity(pattern, fullmatch)) for place, pattern in patterns]
    for growth, what in _COMPLEXITY_MESSAGES:
        places = ", ".join(place for place, found in grown if found == growth)
        if places and mode == "refuse":
            raise ConfigurationError(f"{name}, {places}: {what}: {_REMEDY}, or set urlfilter.regex.unsafe to warn")
        if places:
            _warn_once(current_reporter(), f"{name}, {places}: {what}: {_REMEDY}")


_COMPLEXITY_MESSAGES = (
    (RegexComplexity.EXPONENTIAL, "the time that the expression takes can double with each character of a URL"),
    (RegexComplexity.POLYNOMIAL, "the time that the expression takes can grow with the square of a URL's length"),
)
_REMEDY = "let no two repeats read the same text, begin with ^, or give repeats a bound"


@lru_cache(maxsize=1024)
def _warn_once(taken: Reporter | None, message: str) -> None:
    """Warn, once for each who takes it: every scope and every task of a process reads the same files."""
    del taken
    warn(message)


def read_rules(conf: Configuration, prefix: str, default_file: str) -> RuleFile:
    """Return the rules of ``<point>.rules`` (a value, which comes first) or of the file that ``<point>.file`` names."""
    text = conf.get(f"{prefix}.rules")
    if text:
        return RuleFile(f"property {prefix}.rules", text)
    return read_rules_file(conf, f"{prefix}.file", conf.get_trimmed(f"{prefix}.file", default_file))


def read_rules_file(conf: Configuration, name: str, file: str) -> RuleFile:
    """Return the rules of ``file``, which the property ``name`` gives."""
    path = conf.resource(file)
    text = conf.resource_text(file)
    if path is None or text is None:
        raise ConfigurationError(
            f"the rules file {file} is in no configuration folder: put it beside nutch-site.xml or correct {name}"
        )
    return RuleFile(str(path), text)
