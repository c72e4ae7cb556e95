from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.url.normalizers.basic_url_normalizer import BasicURLNormalizer
from nutch2py.url.normalizers.regex_url_normalizer import RegexURLNormalizer
from nutch2py.url.regex.java_regex import compile_java, translate_replacement

NUTCH_2 = BasicURLNormalizer(Configuration())
NUTCH_1 = BasicURLNormalizer(Configuration({"urlnormalizer.basic.nutch1.rules": "true"}))
_HOSTS = st.sampled_from(
    [
        "a.org",
        "A.org",
        "a.org:80",
        "a.org:443",
        "a.org:81",
        "a.org.",
        "u@a.org",
        "a%2eb",
        "é.fr",
        "",
        "a..b",
        "[::1]:80",
    ]
)
_PIECES = st.sampled_from(
    ["/", "/", "a", "b.html", ".", "..", "./", "?", "#", "//", "%7e", "%2F", "%zz", " ", "é", "|", "=", ":80/", "~"]
)
_URLS = st.builds(
    lambda protocol, host, rest: protocol + host + "".join(rest),
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "file://", "http:"]),
    _HOSTS,
    st.lists(_PIECES, max_size=8),
)


@pytest.mark.parametrize("normalizer", [NUTCH_2, NUTCH_1])
@settings(deadline=None)
@given(url=_URLS)
def test_basic_fast_path_equals_slow_path(normalizer: BasicURLNormalizer, url: str) -> None:
    """A URL that the one expression calls canonical is canonical by the full rules."""
    try:
        quick = normalizer.normalize(url, "default")
    except ValueError:
        return
    assert quick == normalizer.normalize_by_all_rules(url.strip())


@pytest.mark.parametrize("normalizer", [NUTCH_2, NUTCH_1])
@settings(deadline=None)
@given(url=_URLS)
def test_canonical_url_is_unchanged(normalizer: BasicURLNormalizer, url: str) -> None:
    try:
        once = normalizer.normalize(url, "default")
    except ValueError:
        return
    try:
        assert normalizer.normalize(once, "default") == once
    except ValueError:
        assert "%" in url  # an unescaped host may be invalid


@pytest.mark.parametrize(
    "url",
    [
        "http://a.org/%7Euser/",
        "http://a.org/a%2fb",
        "http://a.org/%zz.html",
        "http://a.org/caf\u00e9",
        "http://a.org/a b",
        "http://a.org?x",
    ],
)
def test_nutch_2_results_are_kept(url: str) -> None:
    assert NUTCH_2.normalize(url, "default") == url


@pytest.mark.parametrize("url", ["http://a%2fb/", "http://a%zz/", "http://a%40b/", "http://a%00b/", "tel:1"])
def test_url_without_host_is_malformed(url: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid|unknown protocol"):
        NUTCH_2.normalize(url, "default")


@pytest.mark.parametrize(
    ("url", "expected"),
    [  # results of the class of Nutch 2.4
        ("http://a.org/a/c/../b/search?q=foobar|", "http://a.org/a/c/../b/search?q=foobar|"),
        ("http://a.org/a/c/../b/search?q=foobar%", "http://a.org/a/c/../b/search?q=foobar%"),
        ("http://a.org/a/../b\\c", "http://a.org/a/../b\\c"),
        ("http://a.org//a b", "http://a.org//a b"),
        ("http://a.org//a\u3000", "http://a.org//a\u3000"),
        ("http://a.org//a\u4e2d", "http://a.org/a\u4e2d"),
        ("http://a|b.org//a", "http://a|b.org//a"),
        ("http://A_b.org//a?[]", "http://a_b.org/a?[]"),
        ("http://a.org//[", "http://a.org//["),
        ("http://[::1]//a", "http://[::1]/a"),
        ("http://a.org/..", "http://a.org/.."),
        ("http://a.org/..?x", "http://a.org/..?x"),
        ("http://a.org/a/../..", "http://a.org/.."),
        ("http://a.org/../..", "http://a.org/.."),
        ("http://a.org/../a/..", "http://a.org/"),
        ("http://a.org/../../a", "http://a.org/a"),
        ("http:///path", "http:///path"),
        ("http:a/../b", "http:a/../b"),
        ("file:/a/../b", "file:/a/../b"),
        ("file:///a//b", "file:///a//b"),
        ("http://a.org:00000000000080/", "http://a.org/"),
    ],
)
def test_odd_urls_normalize_like_nutch_2(url: str, expected: str) -> None:
    assert NUTCH_2.normalize(url, "default") == expected


@pytest.mark.parametrize("normalizer", [NUTCH_2, NUTCH_1])
def test_host_with_invalid_utf_8_is_malformed(normalizer: BasicURLNormalizer) -> None:
    with pytest.raises(ValueError, match="Invalid percent-encoded host name"):
        normalizer.normalize("https://abc%FEdef.org/", "default")


def test_space_before_fragment_is_removed() -> None:
    assert NUTCH_2.normalize("http://a.org/b #c", "default") == "http://a.org/b"
    assert NUTCH_1.normalize("http://a.org/b #c", "default") == "http://a.org/b%20"


def test_international_host_is_validated() -> None:
    with pytest.raises(ConfigurationError, match="toAscii"):
        BasicURLNormalizer(Configuration({"urlnormalizer.basic.host.idn": "punycode"}))


DEFAULT_RULES = [  # of conf/regex-normalize.xml, for the plain loop
    (r"(?i)(;?\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\?|&|#|$)", "$4"),
    (r"#.*?(\?|&|$)", "$1"),
    (r"\?&", r"\?"),
    (r"&{2,}", "&"),
    (r"[\?&\.]$", ""),
    (r"^file://+", "file:/"),
    (r"(?<!:)/{2,}", "/"),
]
_PARTS = [
    "http://a.org",
    "/",
    "//",
    "a",
    "?",
    "&",
    "&&",
    ";jsessionid=1",
    "PHPSESSID=2",
    "sid=",
    "#",
    ".",
    "x=1",
    "file:///",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PARTS), max_size=9).map("".join))
def test_prefiltered_regex_rules_equal_plain_loop(url: str) -> None:
    expected = url
    for pattern, replacement in DEFAULT_RULES:
        compiled = compile_java(pattern)
        expected = compiled.sub(translate_replacement(replacement, compiled.groups), expected)
    assert _default_rules().normalize(url, "default") == expected


_loaded: list[RegexURLNormalizer] = []


def _default_rules() -> RegexURLNormalizer:
    if not _loaded:
        _loaded.append(RegexURLNormalizer(Configuration.load()))
    return _loaded[0]


def _xml(path: Path, pattern: str, replacement: str) -> str:
    path.write_text(
        f"<regex-normalize><regex><pattern>{pattern}</pattern><substitution>{replacement}</substitution></regex>"
        "</regex-normalize>",
        encoding="utf-8",
    )
    return str(path)


def test_scope_uses_its_own_rules(tmp_path: Path) -> None:
    conf = Configuration(
        {
            "urlnormalizer.regex.file": _xml(tmp_path / "default.xml", "a", "b"),
            "urlnormalizer.regex.file.inject": _xml(tmp_path / "inject.xml", "a", "c"),
        }
    )
    normalizer = RegexURLNormalizer(conf)
    assert normalizer.normalize("a", "inject") == "c"
    assert normalizer.normalize("a", "fetcher") == "b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<regex-normalize>&</regex-normalize>", "not XML"),
        ("<rules/>", "<regex-normalize>"),
        ("<regex-normalize><regex/></regex-normalize>", "rule 1"),
        (
            "<regex-normalize><regex><pattern>(</pattern><substitution/></regex></regex-normalize>",
            r"rule 1.*cannot be used",
        ),
        (
            "<regex-normalize><regex><pattern>a</pattern><substitution>$1</substitution></regex></regex-normalize>",
            r"rule 1.*cannot be used",
        ),
    ],
)
def test_malformed_rules_are_named_in_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rules.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message) as caught:
        RegexURLNormalizer(Configuration({"urlnormalizer.regex.file": str(path)}))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("plugin", "property_name", "rules"),
    [("host", "hosts", "www.a.org"), ("slash", "slashes", "www.a.org x"), ("slash", "slashes", "www.a.org")],
)
def test_malformed_lines_are_named_in_error(plugin: str, property_name: str, rules: str) -> None:
    conf = Configuration({f"urlnormalizer.{property_name}.rules": f"# first\n{rules}"})
    with pytest.raises(ConfigurationError, match="line 2"):
        create_named_plugin(conf, "urlnormalizer", f"urlnormalizer-{plugin}")


@pytest.mark.parametrize(
    ("plugin", "rules", "url", "expected"),
    [
        ("slash", ("slashes", "a.org +"), "http://a.org:81/x?y", "http://a.org:81/x/?y"),
        ("host", ("hosts", "http b"), "http://http/http", "http://b/http"),
        ("querystring", None, "http://a.org/?b&&a", "http://a.org/?&a&b"),
        ("ajax", None, "http://a.org/#!é", "http://a.org/?_escaped_fragment_=%C3%A9"),
    ],
)
def test_normalization_keeps_port_and_path(plugin: str, rules: tuple[str, str] | None, url: str, expected: str) -> None:
    """Port and path are kept, which Nutch loses or replaces at the wrong position."""
    conf = Configuration({f"urlnormalizer.{rules[0]}.rules": rules[1]} if rules else {})
    assert create_named_plugin(conf, "urlnormalizer", f"urlnormalizer-{plugin}").normalize(url, "default") == expected
