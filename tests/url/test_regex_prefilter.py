from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.url.regex.java_regex import compile_java
from nutch2py.url.regex.regex_prefilter import build_prefilter

RULES = [
    r"^(file|ftp|mailto):",
    r"(?i)\.(gif|jpg|png|js)$",
    r"[?*!@=]",
    r"(/[^/]+)/[^/]+\1/[^/]+\1/",
    r"(?i)(;?\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\?|&|#|$)",
    r"#.*?(\?|&|$)",
    r"\?&",
    r"&{2,}",
    r"[\?&\.]$",
    r"^file://+",
    r"(?<!:)/{2,}",
    r"a|b$",
    r"^a|b",
    r"(ab)?c{2}d*",
    r"(?m)^b$",
    r"[^a]b=?$",
    r"x{0}=",
    r"(a|)=$",
    r"K=|İ",
    r"(?:a=|b=)+&",
]
PIECES = ["a", "b", "A", "B", "=", "/", "//", "&", "?", "#", ".", ".gif", ".JPG", "sid=", "PHPSESSID=", "sessionid=",
          "file://", "file:", "http://", "c", "x", ";", "_", "\n", "İ", "K", "*", "/a/b/a/c/a/"]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None)
@given(text=st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_prefilter_never_rejects_a_match(rule: str, text: str) -> None:
    pattern = compile_java(rule)
    if pattern.search(text):
        assert build_prefilter(pattern)(text, text.lower())


@settings(deadline=None)
@given(
    st.recursive(
        st.sampled_from(["a", "B", "=", "/", "[ab]", "[/=]", ".", "^", "$", r"\b", "[^a]"]),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            inner.map(lambda text: f"({text})"),
            st.tuples(inner, st.sampled_from(["?", "*", "{2}", "{1,3}", "{0,2}?"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
            inner.map(lambda text: f"(?i:{text})"),
            inner.map(lambda text: f"(?={text})"),
        ),
        max_leaves=8,
    ),
    st.text("aAbB=/\n", max_size=8),
)
def test_prefilter_never_rejects_a_match_for_any_expression(rule: str, text: str) -> None:
    pattern = re.compile(rule, re.ASCII)
    if pattern.search(text):
        assert build_prefilter(pattern)(text, text.lower())


@pytest.mark.parametrize("rule", [rule for rule in RULES[:10] if rule != r"(?<!:)/{2,}"])
def test_prefilter_rejects_ordinary_url(rule: str) -> None:
    url = "http://www.example.org/path/page.html"
    assert not build_prefilter(compile_java(rule))(url, url)
