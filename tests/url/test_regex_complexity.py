"""Reported expressions: by the automaton, and by their run time on a text made for them."""

from __future__ import annotations

import re

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.url.regex.java_regex import compile_java
from nutch2py.url.regex.regex_complexity import RegexComplexity, estimate_complexity
from tests.growth import assert_linear, repeated

LINEAR = [
    "foo", "foo.*", "^a+b", r"(/[^/]+)/[^/]+\1/[^/]+\1/", "#[^?&]*", "(?<!:)/{2,}", r"^http://([a-z0-9-]+\.)*a\.org/",
    r"(?i)\.(gif|jpg|png)$", "^(?:[a-z&&[^x]])+/$", r"^[a-z]{1,63}\.[a-z]{2,}$", "^(a+b)*+c", "[?*!@=]", "x*",
    "(a|b)*c*", "^(?:ab|ac)*d", "^a*b*c$", "",
]  # fmt: skip
SQUARE = ["a+b", "foo.*bar", "^a*a*b", "^.*a.*b", r"\d+\.html$", "(.*/){3}", "-{2,}$", "(?=.*a)b"]
EXPONENTIAL = [
    "(a+)+$",
    "(a*)*b",
    "(a|b|ab)*c",
    r"^(\w+\s?)*$",
    r"^[^\W_]+(?:[.-]*[a-z]*)*$",
    "(?:(?:a)+)+b",
    r"(\d|\d\d)*x$",
]


@pytest.mark.parametrize(
    ("expression", "growth"),
    [
        *((text, RegexComplexity.LINEAR) for text in LINEAR),
        *((text, RegexComplexity.POLYNOMIAL) for text in SQUARE),
        *((text, RegexComplexity.EXPONENTIAL) for text in EXPONENTIAL),
    ],
)
def test_regex_growth_is_reported(expression: str, growth: RegexComplexity) -> None:
    assert estimate_complexity(compile_java(expression)) == growth


@pytest.mark.parametrize(("expression", "growth"), [(r"[\s\S]*x[\s\S]*", 1), (".*x.*y", 2), ("a+b", 1), ("(a+)+b", 3)])
def test_full_match_expressions_are_analyzed(expression: str, growth: int) -> None:
    assert estimate_complexity(re.compile(expression), fullmatch=True) == growth


@pytest.mark.parametrize(
    ("expression", "piece"), [("a+b", "a"), ("foo.*bar", "foo"), ("^a*a*b", "a"), (r"\d+\.html$", "1")]
)
def test_expressions_reported_quadratic_are_quadratic(expression: str, piece: str) -> None:
    with pytest.raises(AssertionError, match="grows faster"):
        assert_linear(compile_java(expression).search, {piece: repeated(piece)}, 8192)


@pytest.mark.parametrize("expression", ["(a+)+$", "(a*)*b", "(a|b|ab)*c"])
def test_expressions_reported_exponential_are_exponential(expression: str) -> None:
    with pytest.raises(AssertionError, match="leaps"):
        assert_linear(compile_java(expression).search, {"ab": repeated("ab" if "b|" in expression else "a", tail="!")})


PLUGINS = [
    ("urlfilter-regex", "urlfilter.regex.rules", "+ok\n-(a+)+$\n-b+c\n-d+e", ["line 2", "line 3, line 4"]),
    ("urlfilter-automaton", "urlfilter.automaton.rules", "+(a+)+b\n-.*x.*y", ["line 1", "line 2"]),
    ("urlfilter-fast", "urlfilter.fast.rules", "Domain .\nDenyPath (a+)+$", ["line 2"]),
    (
        "urlnormalizer-regex",
        "urlnormalizer.regex.rules",
        "<regex-normalize><regex><pattern>a+b</pattern><substitution>c</substitution></regex></regex-normalize>",
        ["rule 1"],
    ),
]


@pytest.mark.parametrize(("plugin", "name", "rules", "places"), PLUGINS)
def test_ambiguous_rules_are_named(
    capsys: pytest.CaptureFixture[str], plugin: str, name: str, rules: str, places: list[str]
) -> None:
    conf = Configuration({name: f"{rules}\n"})
    create_named_plugin(conf, plugin.partition("-")[0], plugin)
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == len(places)
    for line, place in zip(warnings, places, strict=True):
        assert f"property {name}, {place}: the time that the expression takes can" in line
    create_named_plugin(conf, plugin.partition("-")[0], plugin)
    assert capsys.readouterr().err == ""  # once is enough


@pytest.mark.parametrize(("plugin", "name", "rules", "places"), PLUGINS)
def test_ambiguous_rules_are_rejected(plugin: str, name: str, rules: str, places: list[str]) -> None:
    conf = Configuration({name: rules, "urlfilter.regex.unsafe": "refuse"})
    with pytest.raises(ConfigurationError, match=f"{name}, {places[0]}: the time"):
        create_named_plugin(conf, plugin.partition("-")[0], plugin)


def test_ambiguity_property_is_validated() -> None:
    conf = Configuration({"urlfilter.regex.rules": "+.", "urlfilter.regex.unsafe": "off"})
    with pytest.raises(ConfigurationError, match=r"urlfilter\.regex\.unsafe is 'off'"):
        create_named_plugin(conf, "urlfilter", "urlfilter-regex")
