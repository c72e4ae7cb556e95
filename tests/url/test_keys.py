from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.url.java_url import parse_url
from nutch2py.url.keys import (
    reverse_host,
    reverse_url,
    reverse_urls,
    reversed_host_of_key,
    unreverse_host,
    unreverse_url,
)

RECORDED = [  # URL, key, URL read back: what the classes of Nutch 2.4 gave
    ("http://bar.foo.com:8983/to/index.html?a=b", "com.foo.bar:http:8983/to/index.html?a=b", None),
    ("http://foo.com", "com.foo:http", None),
    ("http://foo.com?x=1", "com.foo:http/?x=1", "http://foo.com/?x=1"),
    ("http://u:p@foo.com:80/a;b=c/../d", "com.foo:http:80/a;b=c/../d", "http://foo.com:80/a;b=c/../d"),
    ("http://foo.com/#f", "com.foo:http/", "http://foo.com/"),
    ("http://a..b.com./x", "com.b.a:http/x", "http://a.b.com/x"),
    ("http://FOO.Com/A%20b", "Com.FOO:http/A%20b", None),
    ("http://foo.com/中?é=ü", "com.foo:http/中?é=ü", None),
    ("file:/a/b", ":file/a/b", "file:///a/b"),
    ("http://foo.com:/x", "com.foo:http/x", "http://foo.com/x"),
    ("http://127.0.7.1/", "1.7.0.127:http/", None),
]


@pytest.mark.parametrize(("url", "key", "back"), RECORDED)
def test_row_keys_match_nutch_2(url: str, key: str, back: str | None) -> None:
    assert reverse_url(url) == key
    assert reverse_url(url) == key  # again, with the cached host
    assert unreverse_url(key) == (back or url)


def test_reverse_urls_equals_reverse_url() -> None:
    urls = ["http://foo.com/a", "not a url", "http://foo.com/a#b", "http://foo.com/a ", "http://bar.foo.com", ""]
    expected = [*(key for _, key, _ in RECORDED), "com.foo:http/a", None, "com.foo:http/a", "com.foo:http/a"]
    assert reverse_urls([*(url for url, _, _ in RECORDED), *urls]) == [*expected, "com.foo.bar:http", None]


def test_row_key_public_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    table = cases("tableutil")
    functions = {"reverseUrl": reverse_url, "unreverseUrl": unreverse_url}
    passed = [case for case in table if functions[case["args"]["fn"]](case["input"]) == case["expect"]]
    print(f"tableutil {len(passed)}/{len(table)}")
    assert passed == table


@pytest.mark.parametrize("url", ["http://[::1]:8080/x", "http://[2001:db8::1]/", "http://[::ffff:1.2.3.4]/a?b"])
def test_ipv6_address_round_trips(url: str) -> None:
    assert unreverse_url(reverse_url(url)) == url


@pytest.mark.parametrize(
    "key", ["", "foo", "com.foo", "com.foo/x", "com.foo:http:80:1/x", "com.foo:http:x/", ":/", "a::/"]
)
def test_foreign_key_is_named_in_error(key: str) -> None:
    with pytest.raises(ValueError, match="not a row key") as caught:
        unreverse_url(key)
    assert repr(key) in str(caught.value)


@pytest.mark.parametrize("url", ["not a url", "http://a:b/", "tel:1", ""])
def test_malformed_url_has_no_key(url: str) -> None:
    with pytest.raises(ValueError, match=r"protocol: |For input string"):
        reverse_url(url)


@pytest.mark.parametrize("host", ["www.foo.com", "localhost", "10.0.0.1", ""])
def test_reversed_hosts_round_trip(host: str) -> None:
    assert unreverse_host(reverse_host(host)) == host


@pytest.mark.parametrize(
    ("key", "host"), [("com.foo:http:80/a:b", "com.foo"), (":file/a", ""), ("[::1]:http/[a]:b", "[::1]")]
)
def test_host_of_key_is_extracted(key: str, host: str) -> None:
    assert reversed_host_of_key(key) == host


_TEXT = st.text(st.sampled_from("aZ09.-_:/?#@% \t\x01é中[]"), max_size=12)


@settings(deadline=None)
@given(st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "file:/", "http:/"]), _TEXT, _TEXT)
def test_host_cache_does_not_change_result(protocol: str, host: str, rest: str) -> None:
    """The fast path through the table of heads gives the same result as the parts of the URL."""
    url = f"{protocol}{host}/{rest}"
    try:
        parsed = parse_url(url)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            reverse_url(url)
        return
    port = "" if parsed.port == -1 else f":{parsed.port}"
    slash = "/" if parsed.file and not parsed.file.startswith("/") else ""
    host = parsed.host if parsed.host.startswith("[") else reverse_host(parsed.host)
    expected = f"{host}:{parsed.protocol}{port}{slash}{parsed.file}"
    assert reverse_url(url) == expected
    assert reverse_url(url) == expected
