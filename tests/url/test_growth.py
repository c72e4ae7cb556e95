"""The cost of a URL is linear in its length, for every function and pattern: the URLs come from the web."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nutch2py.url
from nutch2py.conf.configuration import Configuration
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.url import browser_url, display_url, idn, java_url, keys, url_parts
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.regex.java_regex import compile_java, translate_replacement
from nutch2py.url.regex.regex_complexity import RegexComplexity, estimate_complexity
from nutch2py.url.url_length import MAX_LENGTH
from nutch2py.url.url_partitioner import URLPartitioner, java_hash
from tests.growth import Shape, assert_linear, patterns_of, repeated, repetitions

Text = Callable[[str], object]

PIECES = ["a", ".", "a.", "/", "./", "../", "/a/..", "?", "&", "#", "%", "%41", "sid=", ";sid=", "=", "é", "é.", ":"]
PIECES += ["@", "[", "]", "xn--", "-", "\\", "1.", "\x01", "!*", "://"]
HEADS = ["http://", "http://h/", "http://h/a?", "http://h/#!", "", "mailto:a?"]
SHAPES = repetitions(PIECES, HEADS, ["", "\n!"])
SHAPES["dots before a colon"] = repeated(".", head="a", tail="!:x")
BASE = java_url.parse_url("http://h/a/b?c")

RULES = {
    "urlnormalizer-host": ("urlnormalizer.hosts.rules", "*.example.com www.example.com"),
    "urlnormalizer-slash": ("urlnormalizer.slashes.rules", "h +"),
    "urlnormalizer-protocol": ("urlnormalizer.protocols.rules", "*.example.com https"),
    "urlfilter-domain": ("urlfilter.domain.rules", "example.com"),
    "urlfilter-domaindenylist": ("urlfilter.domaindenylist.rules", "example.com"),
    "urlfilter-fast": ("urlfilter.fast.rules", "Domain example.com\nDenyPath ^/a\nDomain .\nDenyPathQuery ^/b.*"),
}
NORMALIZERS = ["ajax", "basic", "host", "pass", "protocol", "querystring", "regex", "slash"]
FILTERS = ["automaton", "domain", "domaindenylist", "fast", "prefix", "regex", "suffix", "validator"]


def _conf(plugin_id: str, **properties: str) -> Configuration:
    conf = Configuration.load()
    if plugin_id in RULES:
        conf.set(*RULES[plugin_id])
    for name, value in properties.items():
        conf.set(name.replace("__", "-").replace("_", "."), value)
    return conf


def _normalizer(name: str, scope: str = "default", **properties: str) -> Text:
    plugin_id = f"urlnormalizer-{name}"
    plugin = create_named_plugin(_conf(plugin_id, **properties), "urlnormalizer", plugin_id)
    return lambda url: plugin.normalize(url, scope)


def _filter(name: str) -> Text:
    plugin_id = f"urlfilter-{name}"
    accept: Text = create_named_plugin(_conf(plugin_id), "urlfilter", plugin_id).filter
    return accept


FUNCTIONS: dict[str, Callable[[], Text]] = {
    "parse_url": lambda: java_url.parse_url,
    "parse_relative": lambda: lambda href: java_url.parse_relative(BASE, href),
    "resolve": lambda: lambda href: java_url.resolve_url(BASE, href),
    "resolve as browser": lambda: lambda href: browser_url.resolve_as_browser("http://h/a/b?c", href, str),
    "as_browser_url": lambda: browser_url.as_browser_url,
    "resolve against": lambda: lambda base: java_url.resolve_url(base, "../x"),
    "reverse_url": lambda: keys.reverse_url,
    "unreverse_url": lambda: keys.unreverse_url,
    "reverse_host": lambda: keys.reverse_host,
    "host_of_key": lambda: keys.reversed_host_of_key,
    "host_to_ascii": lambda: lambda url: idn.convert_host_by_uts46.__wrapped__(url[7:]),
    "host_to_ascii_2003": lambda: lambda url: idn.host_to_ascii_2003(url[7:]),
    "host_to_unicode_2003": lambda: lambda url: idn.host_to_unicode_2003(url[7:]),
    "to_ascii": lambda: idn.url_to_ascii,
    "to_unicode": lambda: idn.url_to_unicode,
    "display_url": lambda: display_url.display_url,
    "display_host": lambda: lambda url: display_url.display_host(f"xn--{url[7:]}"),
    "display_host, letters": lambda: lambda url: display_url.display_host("é" + url[7:]),
    "suffix_of_host": lambda: lambda url: url_parts.suffix_of_host.__wrapped__(url[7:]),
    "domain_of_host": lambda: lambda url: url_parts.domain_of_host.__wrapped__(url[7:]),
    "domains_above": lambda: lambda url: [*url_parts.parent_domains(url[7:], 20)],
    "segments_of": lambda: url_parts.segments_of,
    "choose_repr": lambda: lambda url: url_parts.choose_repr(url, url, True),
    "java_hash": lambda: java_hash.__wrapped__,
    "normalize_basic, Nutch 1": lambda: _normalizer("basic", urlnormalizer_basic_nutch1_rules="true"),
    "normalize_basic, IDN": lambda: _normalizer("basic", urlnormalizer_basic_host_idn="toAscii"),
    "normalize_ajax, index": lambda: _normalizer("ajax", "indexer"),
    **{f"normalize_{name}": lambda name=name: _normalizer(name) for name in NORMALIZERS},  # type: ignore[misc]
    **{f"filter_{name}": lambda name=name: _filter(name) for name in FILTERS},  # type: ignore[misc]
    "substitution": lambda: lambda text: translate_replacement(text, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_url_function_time_is_linear(name: str) -> None:
    assert_linear(FUNCTIONS[name](), SHAPES, 16_384)


class Case(NamedTuple):
    """Use of a pattern, and strings that nearly match it."""

    method: str
    pieces: list[str]
    head: str = ""


PATTERNS: dict[str, Case] = {
    "filters.automaton_url_filter:_REPEAT": Case("match", ["1", "{1", "*"], "{"),
    "filters.automaton_url_filter:_CLASS": Case("match", ["a", "\\", "\\]", "[", "^"], "["),
    "display_url:_PERCENT_ENCODED": Case("findall", ["%", "%C", "%C3", "a"]),
    "display_url:_URL": Case("fullmatch", ["a", "@", "/", ":", "é", "."], "http://a"),
    "display_url:_STARTS_WITH_NUMBER": Case("match", ["/", "é", "1"]),
    "display_url:_RARE_LATIN": Case("search", ["a", "é"]),
    "display_url:_NAME_PUNCTUATION": Case("sub", ["l", "·", "l·", "א", "-"]),
    "display_url:_STROKE_IN_LATIN": Case("search", ["a", "ノ", "カ"]),
    "display_url:_REPEATED_MARK": Case("search", ["a", "\u0301", "\u0300\u0301"]),
    "filters.url_filters:_UNSAFE": Case("sub", ["a", "é", " ", "中a"]),
    "filters.url_filters:_READ_DIFFERENTLY": Case("search", ["a", "/", "/a", "://", "a.", "?"], "http://a"),
    "filters.url_filters:_FINAL_DOT": Case("sub", ["a", ".", "a.", "/", "?", "://"], "http://a"),
    "browser_url:_SCHEME": Case("match", ["a", ".", "a-", "+"], "a"),
    "browser_url:_NO_HOST": Case("match", ["a", "@", "/", "://", "//", ":"], "http://"),
    "browser_url:_ESCAPED_DOTS": Case("match", ["a", "/", "%2e", "/%2e", ".", "?"], "http://a/"),
    "browser_url:_MANY_SLASHES": Case("sub", ["/", "\\", "a"], "//"),
    "filters.url_validator:_URL": Case("fullmatch", ["a", "a.", "1.", "-", "/", "?", "/?", "#", ".."], "http://a.bc"),
    "filters.url_validator:_URL_WITHOUT_UNDERSCORES": Case(
        "fullmatch", ["a", "a.", "1.", "-", "/", "?", "/?", "#", ".."], "http://a.bc"
    ),
    "filters.url_validator:_PATH_LIKE": Case("match", ["a", "?", "/"]),
    "filters.url_validator:_DOTS": Case("findall", [".", "..a"]),
    "filters.url_validator:_SLASHES": Case("findall", ["/", "//a"]),
    "idn:_DOTS": Case("split", [".", "a.", "a"]),
    "regex.java_regex:_FLAGS": Case("match", ["a", "-", "i-"], "(?"),
    "regex.java_regex:_PROPERTY": Case("match", ["a", "{", "^"], "\\p{"),
    "regex.java_regex:_CODE_POINT": Case("match", ["a", "1", "{"], "\\x{"),
    "regex.java_regex:_GROUP": Case("findall", ["$", "\\", "a", "${", "$1", "${a"], "${"),
    "java_uri:_PATH": Case("fullmatch", ["a", "%41", "%", "é", "/"]),
    "java_uri:_URIC": Case("fullmatch", ["a", "%41", "%", "é", "?"]),
    "java_uri:_REGISTRY": Case("fullmatch", ["a", "%41", "%", "é", "@"]),
    "java_uri:_USERINFO": Case("fullmatch", ["a", "%41", "%", "é", ":"]),
    "java_url:_PROTOCOL": Case("fullmatch", ["a", ".", "a.", "-+", "a-"], "a"),
    "java_url:_PORT": Case("fullmatch", ["0", "1", "+"]),
    "java_url:_CONTROL": Case("search", ["a", "é"]),
    "java_url:_SIMPLE": Case("fullmatch", ["a", ".", ":", "1", "/", "?", "#"], "http://a"),
    "java_url:_CURRENT_DIR_SEGMENTS": Case("sub", ["/", "/.", "./", "/./", "/./."]),
    "java_url:_READ_DIFFERENTLY": Case("search", ["a", "/", "/a", ".", "a.", "?"], "a"),
    "java_url:_ABSOLUTE": Case("fullmatch", ["a", ".", ":", "1", "/", "#"], "http://a"),
    "java_url:_PLAIN_PATH": Case("fullmatch", ["a", "/", ".", "a/", "a.", "/a", "?", "a/."], "a"),
    "keys:_CLEAN_HEAD": Case("fullmatch", ["a", ".", "a.", ":", "1"], "http://a"),
    "keys:_KEY_HEAD": Case("fullmatch", ["]", "]:", "]:a", ":", "a", "1", "[", "]:a:1"], "["),
    "normalizers.ajax_url_normalizer:_TO_ESCAPE": Case("findall", ["a", "é", "#"]),
    "normalizers.ajax_url_normalizer:_PARAMETER": Case(
        "search", ["&", "&_escaped_fragment_", "_escaped_fragment_=", "a"]
    ),
    "normalizers.basic_url_normalizer:_CLEAN": Case("fullmatch", ["a", "a.", ".", ":1", "/", "é"], "http://a"),
    "normalizers.basic_url_normalizer:_CLEAN_ESCAPED": Case("fullmatch", ["a", "%C3", "%", "é", "/"], "http://a/"),
    "normalizers.basic_url_normalizer:_ODD_PATH": Case("search", ["a", "/a", "."]),
    "normalizers.basic_url_normalizer:_ESCAPE": Case("findall", ["%", "%4", "%41"]),
    "normalizers.basic_url_normalizer:_TO_ESCAPE": Case("findall", ["%", "%4", "%41", "é", " "]),
    "normalizers.basic_url_normalizer:_BAD_ESCAPE": Case("search", ["%41", "a"]),
    "normalizers.basic_url_normalizer:_INVALID_HOST_CHARACTERS": Case("search", ["a", "é"]),
    "normalizers.protocol_url_normalizer:_PROTOCOL": Case("fullmatch", ["a", "%41", "%", "%4"], "a"),
    "url_parts:_IPV4": Case("fullmatch", ["1", "1.", "."]),
}


def _shapes(case: Case) -> dict[str, Shape]:
    return repetitions(case.pieces, sorted({"", case.head}), ["", "\n", "!:x", "\x01"])


def _run(pattern: re.Pattern[str], case: Case) -> Text:
    return (lambda text: pattern.sub("/", text)) if case.method == "sub" else getattr(pattern, case.method)


def test_every_url_pattern_has_a_case() -> None:
    assert set(patterns_of(nutch2py.url)) == set(PATTERNS)


@pytest.mark.parametrize("name", PATTERNS)
def test_url_pattern_time_is_linear(name: str) -> None:
    pattern, case = patterns_of(nutch2py.url)[name], PATTERNS[name]
    assert_linear(_run(pattern, case), _shapes(case), 16_384)
    if case.method in {"fullmatch", "search"}:
        assert estimate_complexity(pattern, case.method == "fullmatch") == RegexComplexity.LINEAR


@pytest.mark.parametrize("name", ["automaton", "fast", "regex"])
def test_shipped_filter_rules_time_is_linear(name: str) -> None:
    create_named_plugin(
        Configuration.load(overrides={"urlfilter.regex.unsafe": "refuse"}), "urlfilter", f"urlfilter-{name}"
    )


def test_shipped_substitutions_time_is_linear() -> None:
    create_named_plugin(
        Configuration.load(overrides={"urlfilter.regex.unsafe": "refuse"}), "urlnormalizer", "urlnormalizer-regex"
    )


@pytest.mark.parametrize("scope", ["default", "outlink"])
def test_all_normalizers_and_filters_time_is_linear(scope: str) -> None:
    """Beyond the limit a URL costs nothing; below it, the shipped configuration takes linear time."""
    conf = Configuration.load(overrides={"http.url.limit": "-1"})
    normalizers, filters = URLNormalizers(conf, scope), URLFilters(conf)

    def take(url: str) -> None:
        found = normalizers.normalize_uncached(url)
        if found is not None:
            filters.filter(found)

    assert_linear(take, SHAPES, 16_384)


def _all() -> list[Text]:
    conf = Configuration.load()
    made = [make() for make in FUNCTIONS.values()]
    return [*made, URLPartitioner(conf).key, URLNormalizers(conf).normalize, compile_java]


EVERY_FUNCTION = _all()
_TEXT = st.one_of(
    st.text(max_size=40),
    st.builds(
        "".join, st.lists(st.sampled_from([*PIECES, *HEADS, "80", "\ud800", "\u3002", "[::1]", "%FE"]), max_size=9)
    ),
)


@settings(deadline=None, max_examples=300)
@given(_TEXT)
def test_every_url_function_returns_or_raises_value_error(text: str) -> None:
    for function in EVERY_FUNCTION:
        try:
            function(text)
        except ValueError:
            continue


@pytest.mark.parametrize("length", [MAX_LENGTH + 1, 3_000_000])
def test_overlong_url_is_rejected(length: int) -> None:
    url = "http://a.org/".ljust(length, "a")
    for function in (java_url.parse_url, keys.reverse_url, FUNCTIONS["resolve"](), FUNCTIONS["parse_relative"]()):
        with pytest.raises(
            ValueError, match=f"a URL of {length} characters, the limit is {MAX_LENGTH}: http://a.org/aa"
        ):
            function(url)
    with pytest.raises(ValueError, match=f"not a row key: .* has {length} characters"):
        keys.unreverse_url("org.a:http/".ljust(length, "a"))


def test_longest_hbase_row_key_is_a_url() -> None:
    key = "org.a:http:80/".ljust(32_767, "a")
    assert keys.reverse_url(keys.unreverse_url(key)) == key
