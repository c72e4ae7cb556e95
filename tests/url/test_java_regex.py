from __future__ import annotations

import pytest

from nutch2py.url.regex.java_regex import compile_java, translate_replacement

# pattern, texts that find() of java.util.regex finds, texts that it does not
JAVA = [
    (r"x(?i)ab", ["xAB", "xab"], ["XAB"]),
    (r"a(?i)b|c", ["aB", "C"], ["AB"]),  # the flag applies after the bar
    (r"(a(?i)b|c)D", ["aBD", "CD"], ["aBd"]),  # to the end of the group
    (r"a(?i)b(?-i)c", ["aBc"], ["aBC"]),
    (r"(?x)a b # c", ["ab"], ["a b"]),
    (r"^[a-z&&[^bc]]+$", ["ad"], ["ab", "A"]),
    (r"^[a-c[x-z]]+$", ["ax"], ["d"]),
    (r"^[^a-c[x-z]]$", ["d"], ["a", "x"]),
    (r"^[^a-z&&[^b]]$", ["b", "1"], ["a"]),
    (r"[&|~]", ["a&"], ["a"]),
    (r"\p{Alpha}\d", ["a1"], ["é1"]),
    (r"[\p{Digit}_]/", ["1/", "_/"], ["a/"]),
    (r"^\P{Alpha}$", ["1"], ["a"]),
    (r"\p{L}b", ["éb", "ab"], ["1b"]),
    (r"\Qa.b\E?", ["a."], ["axb"]),
    (r"^(?<x>a+)\k<x>b", ["aab"], ["ab"]),
    (r"a\z", ["a"], ["a\n"]),
    (r"a\Z", ["a", "a\n"], ["ab"]),
    (r"a++b", ["aab"], ["b"]),
    (r"\x{41}\u0042", ["AB"], ["ab"]),
    (r"[]a]", ["]"], ["b"]),
    (r"\w", ["a"], ["é"]),
]


@pytest.mark.parametrize(("pattern", "found", "missed"), JAVA)
def test_patterns_match_like_java(pattern: str, found: list[str], missed: list[str]) -> None:
    compiled = compile_java(pattern)
    assert [text for text in found if not compiled.search(text)] == []
    assert [text for text in missed if compiled.search(text)] == []


@pytest.mark.parametrize("pattern", ["(a", "a)", "[a", r"\p{Greek}", r"[\P{Alpha}]", "(?q)a", "*a", "a{3,1}"])
def test_unsupported_syntax_is_reported(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_java(pattern)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "result"),
    [
        (r"(a)b", "$1", "xab", "xa"),
        (r"(a)b", r"\?", "ab", "?"),
        (r"(a)b", r"\$1", "ab", "$1"),
        (r"(a)b", "$12", "ab", "a2"),  # there is no group 12
        (r"(?<n>a)b", "<${n}>", "ab", "<a>"),
        (r"(b)|a", "[$1]", "a", "[]"),
        (r"a", r"\\", "a", "\\"),
    ],
)
def test_substitutions_match_java(pattern: str, replacement: str, text: str, result: str) -> None:
    compiled = compile_java(pattern)
    assert compiled.sub(translate_replacement(replacement, compiled.groups), text) == result


@pytest.mark.parametrize("replacement", ["$", "$x", "\\", "a${}"])
def test_malformed_substitution_is_reported(replacement: str) -> None:
    with pytest.raises(ValueError, match="invalid group reference"):
        translate_replacement(replacement, 1)
