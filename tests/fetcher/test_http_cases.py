"""The public HTTP cases: raw responses, header names, proxies, and the functions they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.output.page_updater import PageUpdater
from nutch2py.fetcher.protocols.address_filter import AddressFilter
from nutch2py.fetcher.protocols.fetch_response import parse_header_lines
from nutch2py.fetcher.protocols.header_names import canonical_headers, canonical_name
from nutch2py.fetcher.protocols.http_settings import HttpSettings, ProxySettings, build_user_agent
from nutch2py.fetcher.protocols.response_body import BodyDecoder
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.fetcher.conftest import Crawl
from tests.site.server import Reply, ScriptedSite

Cases = Callable[[str], list[dict[str, Any]]]
CODES = {1: 200, 12: 301, 13: 302, 14: 404, 16: 500}


def raw_reply(case: dict[str, Any]) -> Reply:
    given = case["input"]
    if isinstance(given, dict) and "generator" in given:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
        return Reply(raw=head + b"".join(b"400\r\n" + b"x" * 1024 + b"\r\n" for _ in range(80)) + b"0\r\n\r\n")
    if isinstance(given, dict):
        return Reply(given["server_answers"], headers=[("Location", "http://example.com/")])
    return Reply(raw=given.encode(case["args"].get("bytes", "latin-1")))


def test_http_protocol_public_cases(cases: Cases, site: ScriptedSite, crawl: Crawl) -> None:
    """Nutch 1 accepts responses without a status line or with a broken length; Nutch 2 and the default do not."""
    given, wrong = cases("http_protocol"), []
    for case in given:
        expect = case["expect"]
        if "header_sent" in case["input"]:
            sent = [(case["input"]["header_sent"], case["input"]["value"])]
            if canonical_headers(sent).get(canonical_name(case["args"]["look_up"])) != expect:
                wrong.append(case)
            continue
        path = case["args"].get("path") or case["input"]["path"]
        wanted = case["args"].get("server_expects_request_path", path)
        site.on(wanted, raw_reply(case))
        site.request_counts.clear()
        page = crawl(site.url(path), http_content_limit="65536", http_accept_malformed="true")
        status = page.protocol_status or ProtocolStatus(0)
        good = CODES[status.code] == expect["status"] and site.seen[-1].path == wanted
        if "Location" in expect:
            good = good and status.args == (expect["Location"],)
        if "content" in expect:
            good = good and page.content == expect["content"].encode()
        if "content_length" in expect:
            good = good and len(page.content or b"") == expect["content_length"]
        if "Set-Cookie_contains" in expect:
            good = good and expect["Set-Cookie_contains"] in page.headers["Set-Cookie"]
        if not good:
            wrong.append(case)
    print(f"{len(given) - len(wrong)}/{len(given)}")
    assert not wrong


def test_http_proxy_exception_public_cases(cases: Cases) -> None:
    given = cases("http_proxy_exception")
    wrong = []
    for case in given:
        proxy = ProxySettings("http://proxy:8080", "", tuple(case["args"]["http.proxy.exception.list"]))
        if proxy.is_bypassed(case["input"]) != case["expect"]["is_proxy_exception"]:
            wrong.append(case)
    print(f"{len(given) - len(wrong)}/{len(given)}")
    assert not wrong


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("content-type", "Content-Type"),
        ("CoNtEntType", "Content-Type"),
        ("ConTnTtYpe", "Content-Type"),
        ("Last-modified", "Last-Modified"),
        ("ContentLocation", "Content-Location"),
        ("ETag", "ETag"),
        ("date", "date"),
        ("", ""),
    ],
)
def test_header_name_public_cases(sent: str, stored: str) -> None:
    assert canonical_name(sent) == stored


def test_header_line_public_cases() -> None:
    lines = [b"A: 1\r\n", b"B:\t2 \r\n", b"  3\r\n", b"nonsense\r\n", b"C: \xe9\r\n", b"D:\r\n"]
    assert list(parse_header_lines(lines)) == [("A", "1"), ("B", "2  3"), ("C", "\xe9"), ("D", "")]


@pytest.mark.parametrize(
    ("include", "exclude", "address", "accepted"),
    [
        ("", "", "10.0.0.1", True),
        ("", "loopback", "127.8.8.8", False),
        ("", "localhost", "::1", False),
        ("", "loopback", "0.0.0.0", False),
        ("", "loopback", "::ffff:127.0.0.1", False),
        ("", "sitelocal", "192.168.3.4", False),
        ("", "sitelocal", "100.64.0.9", False),
        ("", "sitelocal", "::ffff:a00:1", False),
        ("", "sitelocal", "fd12::1", False),
        ("", "linklocal", "169.254.169.254", False),
        ("", "linklocal", "fe80::1%eth0", False),
        ("", "loopback,sitelocal,linklocal", "93.184.216.34", True),
        ("", "192.0.2.7", "192.0.2.7", False),
        ("", "192.0.2.7/32", "192.0.2.8", True),
        ("", "2001:db8::/32", "2001:db8::5", False),
        ("192.0.2.0/24", "", "192.0.2.200", True),
        ("192.0.2.0/24", "", "192.0.3.1", False),
        ("192.0.2.0/24", "192.0.2.9", "192.0.2.9", False),
    ],
)
def test_address_filter_public_cases(
    conf: Configuration, include: str, exclude: str, address: str, accepted: bool
) -> None:
    conf.set("http.filter.ipaddress.include", include)
    conf.set("http.filter.ipaddress.exclude", exclude)
    gate = AddressFilter.from_conf(conf)
    assert gate.is_allowed(address) is accepted
    assert bool(gate) is bool(include or exclude)


def test_malformed_address_filter_is_rejected(conf: Configuration) -> None:
    conf.set("http.filter.ipaddress.exclude", "10.0.0.0/99")
    with pytest.raises(ConfigurationError, match=r"exclude holds '10\.0\.0\.0/99'"):
        AddressFilter.from_conf(conf)


def test_agent_string_public_cases(conf: Configuration) -> None:
    for name, value in {
        "name": "probe",
        "version": "1",
        "description": "a test",
        "url": "http://x/",
        "email": "m@x",
    }.items():
        conf.set(f"http.agent.{name}", value)
    assert build_user_agent(conf) == "probe/1 (a test; http://x/; m@x)"


def test_agents_are_rotated(conf: Configuration, tmp_path: Any) -> None:
    (tmp_path / "names.txt").write_text("One/1\n\nTwo/2\n", encoding="utf-8")
    conf.set("http.agent.rotate", "true")
    conf.set("http.agent.rotate.file", str(tmp_path / "names.txt"))
    settings = HttpSettings.from_conf(conf)
    assert {settings.choose_user_agent() for _ in range(60)} == {"One/1", "Two/2"}


def test_sitemaps_have_own_size_limit(conf: Configuration) -> None:
    conf.set("http.content.limit", "10")
    assert HttpSettings.from_conf(conf).content_limit == 10
    assert HttpSettings.from_conf(conf, sitemap=True).content_limit == 52_428_800
    conf.set("sitemap.content.limit", "20")
    assert HttpSettings.from_conf(conf, sitemap=True).content_limit == 20


def test_unlimited_body_in_chunks_is_read() -> None:
    body = BodyDecoder("", -1)
    assert all(body.feed(piece) for piece in (b"ab", b"", b"c"))
    assert (body.content(), body.size, body.truncated) == (b"abc", 3, False)


@pytest.mark.parametrize(
    ("target", "properties", "accepted"),
    [
        ("http://a.test/y", {}, "http://a.test/y"),
        ("http://a.test/x", {}, None),
        ("http://a.test/pic.gif", {}, None),
        ("http://b.test/y", {"db.ignore.external.links": "true"}, None),
        ("http://A.test/y#f", {"db.ignore.external.links": "true"}, "http://a.test/y"),
        ("javascript:void(0)", {}, None),
    ],
)
def test_redirect_target_public_cases(
    conf: Configuration, target: str, properties: dict[str, str], accepted: str | None
) -> None:
    for name, value in properties.items():
        conf.set(name, value)
    moved = PageUpdater(conf).get_redirect("http://a.test/x", ProtocolStatus(Code.MOVED, (target,)))
    assert moved is not None
    assert moved.url == accepted
