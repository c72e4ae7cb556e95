from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.url.filters.automaton_url_filter import translate_automaton
from nutch2py.url.filters.regex_url_filter import RegexURLFilter
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.regex.java_regex import compile_java

SHIPPED = [
    (line[0] == "+", compile_java(line[1:]))
    for line in (data_dir("conf") / "regex-urlfilter.txt").read_text(encoding="utf-8").splitlines()
    if line[:1] in {"+", "-"}
]
FILTER = RegexURLFilter(Configuration.load())
_PIECES = ["http://", "ftp://", "a.org", "/", "/a", "/b", "/a/b/a/c/a/", ".gif", ".JPG", "?", "=", "@", "!", "\n", "x"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=9).map("".join))
def test_prefiltered_shipped_rules_equal_plain_loop(url: str) -> None:
    accepts = next((accepts for accepts, pattern in SHIPPED if pattern.search(url)), False)
    assert FILTER.filter(url) == (url if accepts else None)


def test_url_must_pass_all_filters(conf: Configuration) -> None:
    filters = URLFilters(conf)
    assert filters.filter("http://www.example.org/a.html") == "http://www.example.org/a.html"
    assert filters.filter("http://www.example.org/a.gif") is None
    assert filters.filter("http://localhost/a.html") is None  # the validator's


def test_filter_order_also_selects_filters(conf: Configuration) -> None:
    conf.set("urlfilter.order", "org.apache.nutch.urlfilter.regex.RegexURLFilter")
    filters = URLFilters(conf)
    assert [type(found).__name__ for found in filters.filters] == ["RegexURLFilter"]
    assert filters.filter("http://localhost/") == "http://localhost/"


FILES = ["regex", "automaton", "prefix", "suffix", "domain", "domaindenylist", "fast"]


@pytest.mark.parametrize("name", FILES)
def test_shipped_filter_files_are_readable(name: str) -> None:
    found = create_named_plugin(Configuration.load(), "urlfilter", f"urlfilter-{name}")
    assert found.filter("http://www.example.org/a/page.html") == "http://www.example.org/a/page.html"


@pytest.mark.parametrize("name", FILES)
def test_missing_filter_file_is_named_in_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"nowhere\.txt.*correct urlfilter\.{name}\.file"):
        create_named_plugin(Configuration({f"urlfilter.{name}.file": "nowhere.txt"}), "urlfilter", f"urlfilter-{name}")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("regex", "http"),
        ("regex", "-("),
        ("regex", r"-\p{Greek}"),
        ("automaton", "-a&b"),
        ("automaton", "-[a"),
        ("automaton", "-(a"),
        ("automaton", "-*"),
        ("fast", "DenyPath a"),
        ("fast", "Host"),
        ("fast", "Deny a"),
        ("fast", "Host a\nDenyPath ("),
    ],
)
def test_malformed_filter_line_is_named_in_error(tmp_path: Path, name: str, line: str) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(f"# first\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"line [23]: .*correct or remove") as caught:
        create_named_plugin(Configuration({f"urlfilter.{name}.file": str(path)}), "urlfilter", f"urlfilter-{name}")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "yes", "no"),
    [
        ("a*?", ["", "aa"], ["b"]),  # a repeat of a repeat, not a lazy one
        ("a+?b", ["b", "ab"], ["a"]),
        ('"a.b"+', ["a.ba.b"], ["axb", "a.bb"]),
        ("@x", ["x", "yyx"], ["y"]),
        (r"\d\.", ["d."], ["1."]),
        ("^a$", ["^a$"], ["a"]),
        ("a|()", ["", "a"], ["b"]),
        ("[^a-c]{2}", ["de", "d\n"], ["da"]),
        ("(a|b)c|d", ["ac", "bc", "d"], ["ad", "a"]),
        ("[?*!@=]", ["@", "?"], ["a"]),
    ],
)
def test_automaton_expressions_are_matched(expression: str, yes: list[str], no: list[str]) -> None:
    pattern = re.compile(translate_automaton(expression))
    assert all(pattern.fullmatch(text) for text in yes)
    assert not any(pattern.fullmatch(text) for text in no)


def test_fast_filter_rules_may_be_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt.gz"
    path.write_bytes(gzip.compress(b"Domain org # all below\n  DenyPathQuery ^/a\\?b\nHost x.com\nDenyPath .*\n"))
    found = create_named_plugin(Configuration({"urlfilter.fast.file": str(path)}), "urlfilter", "urlfilter-fast")
    assert found.filter("http://www.example.org/a?b") is None
    assert found.filter("http://www.example.org/a") is not None
    assert found.filter("http://x.com/") is None
    assert found.filter("http://www.x.com/") is not None
    path.write_bytes(b"no gzip")
    with pytest.raises(ConfigurationError, match=r"rules\.txt\.gz"):
        create_named_plugin(Configuration({"urlfilter.fast.file": str(path)}), "urlfilter", "urlfilter-fast")


@pytest.mark.parametrize(
    ("url", "valid"),
    [
        ("http://1.2.3.4:8080/", True),
        ("http://1.2.3.256/", False),
        ("http://a.photography/", True),  # Nutch 2 bounds it to 8 letters
        ("http://a.b1/", True),
        ("http://a.1b/", False),
        ("http://a..bc/", False),
        ("http://a.bc./", False),
        ("http://a.bc:/", False),
        ("http://a.bc:123456/", False),
        ("http://u@a.bc/", False),
        ("http://a.bc/../x", False),
        ("http://a.bc/x/y/../z", True),
        ("http://a.bc/[x]", False),
        ("http://a.bc?x", True),
        ("http://a.bc/é", False),
        ("http1://a.bc/", False),
    ],
)
def test_validator_rejects_invalid_urls(url: str, valid: bool) -> None:
    found = create_named_plugin(Configuration(), "urlfilter", "urlfilter-validator")
    assert (found.filter(url) is not None) == valid


@pytest.mark.parametrize("listed", ["flå.no", "FLÅ.no", "xn--fl-zia.no", "a.flå.no", "www.a.flå.no"])
@pytest.mark.parametrize("host", ["www.a.flå.no", "www.a.FLÅ.no", "www.a.xn--fl-zia.no"])
def test_international_host_matches_both_forms(listed: str, host: str) -> None:
    url, other = f"http://{host}/", "http://www.a.no/"
    allows = create_named_plugin(Configuration({"urlfilter.domain.rules": listed}), "urlfilter", "urlfilter-domain")
    assert (allows.filter(url), allows.filter(other)) == (url, None)
    denies = create_named_plugin(
        Configuration({"urlfilter.domaindenylist.rules": listed}), "urlfilter", "urlfilter-domaindenylist"
    )
    assert (denies.filter(url), denies.filter(other)) == (None, other)


def test_url_beyond_limit_is_rejected() -> None:
    values = {"plugin.includes": "urlfilter-suffix", "urlfilter.suffix.rules": "+\n.gif", "http.url.limit": "9"}
    filters = URLFilters(Configuration(values))
    assert filters.filter("http://ab") == "http://ab"
    assert filters.filter("http://abc") is None


def test_rejected_letters_are_tried_percent_encoded(conf: Configuration) -> None:
    filters = URLFilters(conf)
    assert filters.filter("http://h.test/火车") is None
    assert filters.filter_link("http://h.test/火车 a") == "http://h.test/%E7%81%AB%E8%BD%A6%20a"
    assert filters.filter_link("http://h.test/a") == "http://h.test/a"
    assert filters.filter_link('http://h.test/{a|b}^`<c>"') == "http://h.test/%7Ba%7Cb%7D%5E%60%3Cc%3E%22"
    assert filters.filter_link("http://h.test/a?b") is None
    assert filters.filter_link("http://h.test/火车?b") is None
    conf.set("plugin.includes", "urlfilter-regex")  # a table of Nutch without the validator has such keys
    assert URLFilters(conf).filter_link("http://h.test/火车") == "http://h.test/火车"
