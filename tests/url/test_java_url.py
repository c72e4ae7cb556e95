from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.url.browser_url import as_browser_url, join_as_browser
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.java_url import compose_url, parse_relative, parse_url, resolve_url

# Results of java.net.URL: protocol, host, port, path, query, ref, user info, and the whole URL
JAVA = [
    ("http://u:p@h:80/a/../b?c?d#e", ("http", "h", 80, "/a/../b", "c?d", "e", "u:p"), None),
    ("HTTP://H/", ("http", "H", -1, "/", None, None, None), "http://H/"),
    ("url:http://a/", ("http", "a", -1, "/", None, None, None), "http://a/"),
    (" http://a/ ", ("http", "a", -1, "/", None, None, None), "http://a/"),
    ("http://", ("http", "", -1, "", None, None, None), "http:"),
    ("http:///x", ("http", "", -1, "/x", None, None, None), "http:/x"),
    ("http:x", ("http", "", -1, "x", None, None, None), None),
    ("file:///a", ("file", "", -1, "/a", None, None, None), "file:/a"),
    ("mailto:a@b.c?s=x", ("mailto", "", -1, "a@b.c", "s=x", None, None), None),
    ("http://a@b@c/", ("http", "", -1, "/", None, None, None), None),
    ("http://[::1]:81/", ("http", "[::1]", 81, "/", None, None, None), None),
    ("http://a?b/c", ("http", "a", -1, "", "b/c", None, None), None),
]


@pytest.mark.parametrize(("url", "expected", "written"), JAVA)
def test_url_parts_match_java(url: str, expected: tuple[Any, ...], written: str | None) -> None:
    parsed = parse_url(url)
    assert tuple(parsed)[:-1] == expected
    assert str(parsed) == (written or url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("not a url", "no protocol: not a url"),
        ("", "no protocol: "),
        ("//host/", "no protocol: //host/"),
        ("javascript:void(0)", "unknown protocol: javascript"),
        ("http://a:b/", 'For input string: "b"'),
        ("http://a:-2/", "Invalid port number :-2"),
        ("http://a:99999999999/", 'For input string: "99999999999"'),
        ("http://[::g]/", "Invalid host: [::g]"),
        ("http://[::1/", "Invalid authority field: [::1"),
        ("http://a\tb/", "Illegal character found in host: control char (code=9)"),
        ("mailto:", "No email address"),
    ],
)
def test_url_errors_match_java(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_url(url)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("base", "href", "expected"),
    [
        ("http://a/b/../c/d", "e", "http://a/c/e"),  # dots of the base go when something is joined to it
        ("http://a/b/../c/d", "/e/../f", "http://a/e/../f"),  # those of a rooted href stay
        ("http://a", "b", "http://a/b"),
        ("http://a", "?b", "http://a/?b"),
        ("http://u:p@a:80/x", "y", "http://u:p@a:80/y"),
        ("http://a/b/c", "http:d", "http://a/b/d"),
        ("http://a/b/c", "../../../d", "http://a/../../d"),
        ("https://a/b", "//c/d", "https://c/d"),
        ("http://a/b", "mailto:x@y.z", "mailto:x@y.z"),
        ("http://a/b", " \n c \t", "http://a/c"),
        ("http://a/b", "c d", "http://a/c d"),
        ("http://a/b", "#c", "http://a/b#c"),
        ("http://a/b?c", "", "http://a/b?c"),
    ],
)
def test_relative_links_resolve_like_java(base: str, href: str, expected: str) -> None:
    assert resolve_url(base, href) == expected
    assert resolve_url(parse_url(base), href) == expected


_BASES = ["http://a/b/c/d;p?q#f", "http://a", "https://u:p@h:81/x/./y/../z", "file:/a/b", "http://a/../b/"]
_PIECES = ["a", "b.html", ".", "..", "/", "//", "?", "#", "=", "&", ":", "http:", "%20", " ", "é", "~", ";", "@h", ",x"]


@settings(deadline=None)
@given(st.sampled_from(_BASES), st.lists(st.sampled_from(_PIECES), max_size=7).map("".join))
def test_resolved_as_java_or_as_browser(base: str, href: str) -> None:
    """The fast paths equal the slow ones, and the result is what a browser requests, if it accepts the link."""
    parsed = parse_url(base)
    stripped = href.strip()
    if stripped.startswith("?"):
        stripped = parsed.path[parsed.path.rfind("/") + 1 :] + stripped
    allowed = {join_as_browser(base, href)} - {None}
    with contextlib.suppress(ValueError):
        allowed.add(str(parse_relative(parsed, stripped)))
    if not allowed:
        with pytest.raises(ValueError, match=r"."):
            resolve_url(base, href)
        return
    found = resolve_url(base, href)
    assert found in allowed
    requested = join_as_browser(base, href)
    if requested is not None and not base.startswith("file:"):
        assert (as_browser_url(found) or "").partition("#")[0] == requested.partition("#")[0]


def test_host_parsing_web_platform_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    """WHATWG cases prove the one part of that standard used here: the host parser under the IDNA 2008 conversion.

    Where the host of an absolute case is not ASCII, the conversion gives the standard's host or fails as it does.
    On all of them reading and resolving either succeed or raise ValueError.
    """
    table, hosts = cases("wpt_http"), 0
    for case in table:
        base = case["base"] or "http://example.org/"
        try:
            parsed = parse_url(resolve_url(base, case["input"]))
        except ValueError:
            continue
        if parsed.host.isascii() or any(character in parsed.host for character in "%\\"):
            continue
        hosts += 1
        try:
            found = host_to_ascii(parsed.host)
        except ValueError:
            found = None
        assert found == case.get("hostname"), case
    print(f"wpt_http {len(table)}/{len(table)} read without another error, {hosts} international hosts compared")
    assert hosts > 10


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        (("http", "a", -1, "/x?y"), "http://a/x?y"),
        (("http", "::1", 80, "/"), "http://[::1]:80/"),
        (("file", "", -1, "/x"), "file:/x"),
    ],
)
def test_urls_are_composed_from_parts(parts: tuple[str, str, int, str], url: str) -> None:
    assert compose_url(*parts) == url
