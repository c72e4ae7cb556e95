"""URLs as browsers read them, beside Java's: links, redirects and seeds that Nutch loses or resolves elsewhere."""

from __future__ import annotations

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.links.outlink_filter import OutlinkFilter
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.url.browser_url import as_browser_url
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.java_url import resolve_url
from nutch2py.url.keys import reverse_url

_BASE = "http://www.example.org/docs/guide/page.html"


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        # another URL in Java: as in a browser
        ("///other.example/x", "http://other.example/x"), ("https:other.example/x", "https://other.example/x"),
        ("https:/other.example/x", "https://other.example/x"), ("/\\other.example/x", "http://other.example/x"),
        ("http://other.example\\x", "http://other.example/x"), ("http://oth\ner.example/x", "http://other.example/x"),
        ("http://0x7f.1:80é/", None), ("http://u:p@other.example/x", "http://u:p@other.example/x"),
        ("http://www.ｅxample.org/", "http://www.ｅxample.org/"), ("http:x", "http://www.example.org/docs/guide/x"),
        # dots of path segments may be escaped
        ("a/%2e%2E/x", "http://www.example.org/docs/guide/x"), (".%2e/x", "http://www.example.org/docs/x"),
        ("%2E", "http://www.example.org/docs/guide/"), ("%2e%2ea/x", "http://www.example.org/docs/guide/%2e%2ea/x"),
        ("x?y=/%2e%2e/", "http://www.example.org/docs/guide/x?y=/%2e%2e/"), ("a%2e/x", "http://www.example.org/docs/guide/a%2e/x"),
        # the same URL: as Java writes it, which is the row key of Nutch's tables
        ("../süß und sauer", "http://www.example.org/docs/süß und sauer"), ("a|b", "http://www.example.org/docs/guide/a|b"),
        ("http://münchen.example/", "http://münchen.example/"), ("/../x", "http://www.example.org/../x"),
        ("a//b", "http://www.example.org/docs/guide/a//b"), ("http://[::1]/x", "http://[::1]/x"),
        ("?q=a:b", "http://www.example.org/docs/guide/page.html?q=a:b"), ("x#a:b", "http://www.example.org/docs/guide/x#a:b"),
        # no link of the web in either
        ("javascript:void(0)", None), ("tel:+1", None), ("data:text/html,x", None),
    ],
)  # fmt: skip
def test_link_is_resolved_as_java_unless_browsers_request_another_url(href: str, expected: str | None) -> None:
    try:
        found = resolve_url(_BASE, clean_reference(href))
    except ValueError:
        found = None
    assert found == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://münchen.de/x", "http://xn--mnchen-3ya.de/x"), ("http://россия.рф/", "http://xn--h1alffa9f.xn--p1ai/"),
        ("http://例え.jp/あ", "http://xn--r8jz45g.jp/%E3%81%82"), ("http://faß.de/", "http://xn--fa-hia.de/"),
        ("http://ＷＷＷ．example.org/", "http://www.example.org/"), ("http://www。example。org/", "http://www.example.org/"),
        ("http://ex%C3%A4mple.org/", "http://xn--exmple-cua.org/"), ("http://example.org/../a", "http://example.org/a"),
        ("http://example.org./a", "http://example.org/a"), ("http://my_host.example.org/", "http://my_host.example.org/"),
        ("http://example.org/süß", "http://example.org/s%C3%BC%C3%9F"), ("http://example.org/a|b", "http://example.org/a%7Cb"),
        ("http://a b.example/", None), ("http://xn--zz--/", None), ("http://..example/", None),
        ("http://münchen.de/a.gif", None), ("http://localhost/../", None),
    ],
)  # fmt: skip
def test_rejected_url_is_tried_as_browsers_request_it(url: str, expected: str | None) -> None:
    filters = URLFilters(Configuration.load())
    assert filters.filter_link(url) == expected
    if expected is not None:
        assert filters.filter_link(expected) == expected
        assert (
            "_" in url
            or URLFilters(Configuration.load(overrides={"urlfilter.try.escaped": "false"})).filter(url) is None
        )


def test_accepted_unicode_host_keeps_its_row_key() -> None:
    """A table whose filters accept such hosts, as without the validator, has the keys that Nutch gave it."""
    filters = URLFilters(Configuration.load(overrides={"plugin.excludes": "urlfilter-validator"}))
    assert filters.filter_link("http://münchen.de/x") == "http://münchen.de/x"
    assert reverse_url("http://münchen.de/x") == "de.münchen:http/x"


def test_underscores_are_rejected_when_configured() -> None:
    conf = Configuration.load(overrides={"urlfilter.validator.underscores": "false"})
    assert URLFilters(conf).filter_link("http://my_host.example.org/") is None


def test_link_and_redirect_to_unicode_host_are_kept() -> None:
    links = OutlinkFilter(Configuration.load())
    assert links.accept("http://Bücher.example/") == "http://xn--bcher-kva.example/"
    assert links.accept_redirect("http://Bücher.example/") == "http://xn--bcher-kva.example/"


def test_url_without_browser_form_is_none() -> None:
    assert as_browser_url("http://a b/") is None
    assert as_browser_url("mailto:a@example.org") is None
    assert as_browser_url("http://h:99999/") is None
