"""Reads the rule files of normalizers and filters, and reports errors in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.url.regex.java_regex import compile_java


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
