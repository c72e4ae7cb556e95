"""Which expressions are named: the answer by the automaton, and by what they do on a text made for them."""

from __future__ import annotations

import re

import pytest

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins import named
from nutch2py.url.ambiguity import Growth, growth_of
from nutch2py.url.java_regex import compile_java
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
        *((text, Growth.LINEAR) for text in LINEAR),
        *((text, Growth.SQUARE) for text in SQUARE),
        *((text, Growth.EXPONENTIAL) for text in EXPONENTIAL),
    ],
)
def test_growth_is_told(expression: str, growth: Growth) -> None:
    assert growth_of(compile_java(expression)) == growth


@pytest.mark.parametrize(("expression", "growth"), [(r"[\s\S]*x[\s\S]*", 1), (".*x.*y", 2), ("a+b", 1), ("(a+)+b", 3)])
def test_what_has_to_match_the_whole(expression: str, growth: int) -> None:
    assert growth_of(re.compile(expression), whole=True) == growth


@pytest.mark.parametrize(
    ("expression", "piece"), [("a+b", "a"), ("foo.*bar", "foo"), ("^a*a*b", "a"), (r"\d+\.html$", "1")]
)
def test_what_is_called_square_is(expression: str, piece: str) -> None:
    with pytest.raises(AssertionError, match="grows faster"):
        assert_linear(compile_java(expression).search, {piece: repeated(piece)}, 8192)


@pytest.mark.parametrize("expression", ["(a+)+$", "(a*)*b", "(a|b|ab)*c"])
def test_what_is_called_exponential_is(expression: str) -> None:
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
def test_the_rules_are_named(
    capsys: pytest.CaptureFixture[str], plugin: str, name: str, rules: str, places: list[str]
) -> None:
    conf = Configuration({name: f"{rules}\n"})
    named(conf, plugin.partition("-")[0], plugin)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == len(places)
    for line, place in zip(told, places, strict=True):
        assert f"property {name}, {place}: the time that the expression takes can" in line
    named(conf, plugin.partition("-")[0], plugin)
    assert capsys.readouterr().err == ""  # once is enough


@pytest.mark.parametrize(("plugin", "name", "rules", "places"), PLUGINS)
def test_the_rules_are_refused(plugin: str, name: str, rules: str, places: list[str]) -> None:
    conf = Configuration({name: rules, "urlfilter.regex.unsafe": "refuse"})
    with pytest.raises(ConfigurationError, match=f"{name}, {places[0]}: the time"):
        named(conf, plugin.partition("-")[0], plugin)


def test_the_property_is_checked() -> None:
    conf = Configuration({"urlfilter.regex.rules": "+.", "urlfilter.regex.unsafe": "off"})
    with pytest.raises(ConfigurationError, match=r"urlfilter\.regex\.unsafe is 'off'"):
        named(conf, "urlfilter", "urlfilter-regex")
