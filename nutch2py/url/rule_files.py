"""Reads the rule files of normalizers and filters, and reports errors in them.

Expressions with more than linear time in the length of a URL are reported when they are read
(``urlfilter.regex.unsafe``), since a page can contain a link that exploits them.
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
    """The text of rules, and its name for messages: a path, or the property with the text."""

    name: str
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield (number, line) for every line that is neither blank nor a ``#`` comment, with outer spaces."""
        for number, line in enumerate(self.text.split("\n"), 1):
            line = line.removesuffix("\r")
            if line.strip() and not line.startswith("#"):
                yield number, line

    def error(self, number: int, reason: str) -> ConfigurationError:
        """Return the error for a line, with the file and the line number."""
        return ConfigurationError(f"{self.name}, line {number}: {reason}: correct or remove the rule")

    def compile(self, number: int, pattern: str) -> re.Pattern[str]:
        """Compile the Java pattern of a line."""
        try:
            return compile_java(pattern)
        except ValueError as error:
            raise self.error(number, f"{pattern!r} is not a usable regular expression ({error})") from None


def check_regex_complexity(
    conf: Configuration, name: str, patterns: Iterable[tuple[str, re.Pattern[str]]], *, fullmatch: bool = False
) -> None:
    """Report the patterns with more than linear time, by ``urlfilter.regex.unsafe``: ``warn`` or ``refuse``.

    Args:
        conf: The configuration.
        name: Name of the rule file.
        patterns: Pairs of a location, such as ``line 7``, and a pattern.
        fullmatch: The patterns must match the whole URL.

    Raises:
        ConfigurationError: The property is ``refuse`` and a pattern takes more than linear time.
    """
    mode = conf.get_trimmed("urlfilter.regex.unsafe", "warn").lower()
    if mode not in {"warn", "refuse"}:
        raise ConfigurationError(f"property urlfilter.regex.unsafe is {mode!r}: set it to warn or refuse")
    estimates = [(location, estimate_complexity(pattern, fullmatch)) for location, pattern in patterns]
    for complexity, problem in _COMPLEXITY_MESSAGES:
        locations = ", ".join(location for location, found in estimates if found == complexity)
        if locations and mode == "refuse":
            raise ConfigurationError(
                f"{name}, {locations}: {problem}: {_REMEDY}, or set urlfilter.regex.unsafe to warn"
            )
        if locations:
            _warn_once(current_reporter(), f"{name}, {locations}: {problem}: {_REMEDY}")


_COMPLEXITY_MESSAGES = (
    (RegexComplexity.EXPONENTIAL, "the time that the expression takes can double with each character of a URL"),
    (RegexComplexity.POLYNOMIAL, "the time that the expression takes can grow with the square of a URL's length"),
)
_REMEDY = "let no two repeats read the same text, begin with ^, or give repeats a bound"


@lru_cache(maxsize=1024)
def _warn_once(reporter: Reporter | None, message: str) -> None:
    """Log a warning once per reporter: every scope and task of a process reads the same files."""
    del reporter
    warn(message)


def read_rules(conf: Configuration, prefix: str, default_file: str) -> RuleFile:
    """Return the rules in the property ``<prefix>.rules`` or else in the file named by ``<prefix>.file``."""
    text = conf.get(f"{prefix}.rules")
    if text:
        return RuleFile(f"property {prefix}.rules", text)
    return read_rules_file(conf, f"{prefix}.file", conf.get_trimmed(f"{prefix}.file", default_file))


def read_rules_file(conf: Configuration, name: str, file: str) -> RuleFile:
    """Return the rules of ``file``, the value of the property ``name``."""
    path = conf.resource(file)
    text = conf.resource_text(file)
    if path is None or text is None:
        raise ConfigurationError(
            f"rules file {file} not found in the configuration folders: put it next to nutch-site.xml or correct {name}"
        )
    return RuleFile(str(path), text)
