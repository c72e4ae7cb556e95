"""Requests and their headers: validators, logins, cookies, agents, international names, long URLs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.output.page_updater import get_protocol_status
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_auth import CredentialStore
from nutch2py.records.webpage import CrawlStatus, Mark
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.fetcher.conftest import BATCH, Crawl, item
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>hello</body></html>"


def test_etag_is_sent_back(site: ScriptedSite, fetch_conf: Configuration) -> None:
    site.on("/p", Reply(304, headers=[("ETag", '"v1"')], content_type=None))
    known = item(site.url("/p"), status=CrawlStatus.FETCHED, headers={"ETag": '"v1"', "Last-Modified": "x"})
    done: list[FetchItem] = []
    Fetcher(fetch_conf, log=lambda _: None).run(iter([known]), done.append)
    assert site.seen[-1].headers["if-none-match"] == '"v1"'
    assert "if-modified-since" not in site.seen[-1].headers
    assert done[0].page.status == CrawlStatus.NOTMODIFIED
    assert dict(done[0].page.headers)["ETag"] == '"v1"'


@pytest.mark.parametrize(
    ("status", "marked"), [(CrawlStatus.UNFETCHED, False), (CrawlStatus.RETRY, False), (CrawlStatus.FETCHED, True)]
)
def test_etag_is_not_sent_for_forced_refetch(
    site: ScriptedSite, fetch_conf: Configuration, status: CrawlStatus, marked: bool
) -> None:
    """For a forced refetch, and for a repeated fetch, since a 304 would prevent the parse."""
    site.on("/p", Reply(body=PAGE))
    known = item(site.url("/p"), status=status, headers={"ETag": '"v1"'})
    if marked:
        known.page.markers[Mark.FETCH] = BATCH
    Fetcher(fetch_conf, log=lambda _: None).run(iter([known]), lambda _: None)
    assert "if-none-match" not in site.seen[-1].headers


def test_validators_are_not_sent_when_disabled(site: ScriptedSite, fetch_conf: Configuration) -> None:
    site.on("/p", Reply(body=PAGE))
    fetch_conf.set("http.enable.if.modified.since.header", "false")
    known = item(site.url("/p"), status=2, headers={"ETag": '"v1"'}, modified_time=1_600_000_000_000)
    Fetcher(fetch_conf, log=lambda _: None).run(iter([known]), lambda _: None)
    assert not {"if-none-match", "if-modified-since"} & site.seen[-1].headers.keys()


def test_future_modified_time_is_not_sent(site: ScriptedSite, fetch_conf: Configuration) -> None:
    site.on("/p", Reply(body=PAGE))
    known = item(site.url("/p"), status=2, modified_time=4_102_444_800_000)
    Fetcher(fetch_conf, log=lambda _: None).run(iter([known]), lambda _: None)
    assert "if-modified-since" not in site.seen[-1].headers


def logins(folder: Path, text: str) -> str:
    path = folder / "auth.xml"
    path.write_text(f"<auth-configuration>{text}</auth-configuration>", encoding="utf-8")
    return str(path)


BASIC = Reply(401, headers=[("WWW-Authenticate", 'Basic realm="r"')])
DIGEST = Reply(401, headers=[("WWW-Authenticate", 'Digest realm="r", nonce="abc", qop="auth", algorithm=MD5')])


def test_login_is_sent_on_challenge(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    file = logins(
        tmp_path,
        f'<credentials username="u" password="p:w"><authscope host="127.0.0.1" port="{site.port}"/></credentials>',
    )
    site.on("/basic", BASIC, Reply(body=PAGE))
    site.on("/digest", DIGEST, Reply(body=PAGE))
    site.on("/open", Reply(body=PAGE))
    urls = [site.url(path) for path in ("/basic", "/digest", "/open")]
    crawl(*urls, threads=1, http_auth_file=file)
    assert [crawl.pages[url].content for url in urls] == [PAGE] * 3
    sent = {path: [seen.headers.get("authorization") for seen in site.seen if seen.path == path] for path in
            ("/basic", "/digest", "/open", "/robots.txt")}  # fmt: skip
    assert sent["/basic"] == [None, "Basic " + base64.b64encode(b"u:p:w").decode()]
    assert sent["/digest"][0] is None
    assert str(sent["/digest"][1]).startswith('Digest username="u", realm="r"')
    assert sent["/open"] == sent["/robots.txt"] == [None]


def test_login_is_limited_to_host_and_scheme(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    file = logins(
        tmp_path, '<credentials username="u" password="p"><authscope host="a.test" scheme="DIGEST"/></credentials>'
    )
    site.on("/basic", BASIC)
    site.on("b.test/digest", DIGEST)
    first = crawl(site.url("/basic", "a.test"), site.url("/digest", "b.test"), http_auth_file=file)
    assert first.protocol_status is not None
    assert first.protocol_status.code == Code.ACCESS_DENIED
    assert all("authorization" not in seen.headers for seen in site.seen)


def test_login_file_precedence_is_defined(conf: Configuration, tmp_path: Path) -> None:
    file = logins(
        tmp_path,
        '<credentials username="a" password="1"><authscope host="X.test" port="80"/><default/></credentials>'
        '<credentials username="b" password="2"><authscope host="x.test" port="-1" scheme="NTLM"/></credentials>',
    )
    conf.set("http.auth.file", file)
    conf.set("http.auth.default.hosts", "*")
    found = CredentialStore.from_conf(conf)
    of = {place: found.find(*place) for place in (("x.test", 80), ("x.test", 81), ("y.test", 80))}
    assert [(c.login, c.scheme) for c in of.values() if c] == [("a:1", ""), ("b:2", "ntlm"), ("a:1", "")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<credentials", r"^cannot read .*: repair the file's XML$"),
        ('<credentials><default scheme="magic"/></credentials>', r"^http\.auth\.file: .* names the scheme 'magic'"),
    ],
)
def test_malformed_login_file_is_rejected(conf: Configuration, tmp_path: Path, text: str, message: str) -> None:
    conf.set("http.auth.file", logins(tmp_path, text))
    with pytest.raises(ConfigurationError, match=message):
        CredentialStore.from_conf(conf)


DEFAULT_LOGINS = {
    "default": '<credentials username="u" password="p"><default/></credentials>',
    "scope without host": '<credentials username="u" password="p"><authscope port="-1"/></credentials>',
    "scope of any host": '<credentials username="u" password="p"><authscope host="*" realm="r"/></credentials>',
    "default after scope": '<credentials username="u" password="p"><authscope host="c.test"/><default/></credentials>',
}


@pytest.mark.parametrize("text", DEFAULT_LOGINS.values(), ids=DEFAULT_LOGINS)
def test_default_login_goes_only_to_named_hosts(
    site: ScriptedSite, crawl: Crawl, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = ("a.test", "sub.a.test", "b.test", "x.b.test", "nota.test", "xb.test")
    (tmp_path / "hosts").write_text("".join(f"127.0.0.1 {host}\n" for host in hosts))
    for number in range(len(hosts)):
        site.on(f"/{number}", BASIC, Reply(body=PAGE))
    urls = [site.url(f"/{number}", host) for number, host in enumerate(hosts)]
    file, known = logins(tmp_path, text), str(tmp_path / "hosts")
    crawl(*urls, threads=1, http_auth_file=file, http_auth_default_hosts="A.test, *.b.test", http_hosts_file=known)
    assert {seen.path for seen in site.seen if seen.path != "/robots.txt"} == {f"/{number}" for number in range(6)}
    sent = {seen.path for seen in site.seen if "authorization" in seen.headers}
    assert sent == {"/0", "/3"}
    assert "http.auth" not in capsys.readouterr().err


@pytest.mark.parametrize("text", DEFAULT_LOGINS.values(), ids=DEFAULT_LOGINS)
def test_default_login_without_hosts_is_not_sent_and_warned_about(
    site: ScriptedSite, crawl: Crawl, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/basic", BASIC)
    crawl(site.url("/basic"), site.url("/basic", "a.test"), http_auth_file=logins(tmp_path, text))
    assert all("authorization" not in seen.headers for seen in site.seen)
    assert capsys.readouterr().err.count("http.auth.default.hosts") == 1


@pytest.mark.parametrize("hosts", ["*", "127.0.0.1"])
def test_default_login_is_sent_to_hosts_of_property(
    site: ScriptedSite, crawl: Crawl, tmp_path: Path, hosts: str
) -> None:
    site.on("/basic", BASIC, Reply(body=PAGE))
    file = logins(tmp_path, DEFAULT_LOGINS["default"])
    assert crawl(site.url("/basic"), http_auth_file=file, http_auth_default_hosts=hosts).content == PAGE


@pytest.mark.parametrize(
    ("attributes", "advice"),
    [
        ('authMethod="formAuth" loginUrl="http://a.test/login" loginFormId="f"', "http.agent.host.cookie.file"),
        ('authMethod="FORMAUTH"', "http.agent.host.cookie.file"),
        ('authMethod="oauth" username="u" password="p"', "write httpAuth"),
    ],
)
def test_login_by_other_method_is_warned_about(
    conf: Configuration, tmp_path: Path, attributes: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f'<credentials {attributes}><authscope host="a.test"/><default/><loginPostData/></credentials>'
    conf.set("http.auth.file", logins(tmp_path, text))
    assert not CredentialStore.from_conf(conf)
    said = capsys.readouterr().err
    assert said.count("authMethod") == 1
    assert advice in said
    conf.set("http.auth.file", logins(tmp_path, text.replace(attributes, 'authMethod="httpAuth" username="u"')))
    assert CredentialStore.from_conf(conf)


def test_received_cookies_are_not_sent_by_default(site: ScriptedSite, crawl: Crawl) -> None:
    for number in range(3):
        site.on(f"/{number}", Reply(body=PAGE, headers=[("Set-Cookie", "id=1; Path=/")]))
    crawl(*(site.url(f"/{number}") for number in range(3)))
    assert all("cookie" not in seen.headers for seen in site.seen)


def test_agents_are_rotated(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    names = tmp_path / "agents.txt"
    names.write_text("One/1\nTwo/2\n", encoding="utf-8")
    urls = [site.url(f"/{number}") for number in range(40)]
    crawl(*urls, http_agent_rotate="true", http_agent_rotate_file=str(names))
    assert {seen.headers["user-agent"] for seen in site.seen} == {"One/1", "Two/2"}


def test_accept_headers_follow_properties(site: ScriptedSite, crawl: Crawl) -> None:
    crawl(site.url("/"), http_accept="a/b", http_accept_language="de", http_accept_charset="")
    headers = site.seen[-1].headers
    assert (headers["accept"], headers["accept-language"]) == ("a/b", "de")
    assert "accept-charset" not in headers


def test_international_host_is_requested_in_punycode(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("127.0.0.1 xn--bcher-kva.test\n", encoding="utf-8")
    site.on("/p", Reply(body=PAGE))
    url = site.url("/p", "bücher.test")
    page = crawl(url, http_hosts_file=str(names))
    assert page.content == PAGE
    assert page.base_url == url
    assert {seen.host for seen in site.seen} == {"xn--bcher-kva.test"}


def test_overlong_url_is_not_requested(site: ScriptedSite, crawl: Crawl) -> None:
    url = site.url("/" + "x" * 200)
    page = crawl(url, site.url("/y"), http_url_limit="100")
    assert page.status == CrawlStatus.RETRY
    assert crawl.report.counters["exception_limit_exceeded"] == 1
    assert site.gets("/y") == 1
    assert len([seen for seen in site.seen if len(seen.path) > 100]) == 0


def test_host_with_silent_robots_txt_is_skipped(site: ScriptedSite, crawl: Crawl) -> None:
    """RFC 9309, 2.3.1.4: an unavailable file disallows; the row says so and is retried as after any failure."""
    site.on("/robots.txt", Reply(hang=20))
    site.on("/p", Reply(body=PAGE))
    page = crawl(site.url("/p"), http_timeout="300")
    assert page.status == CrawlStatus.RETRY
    assert page.protocol_status is not None
    assert page.protocol_status.args[0].startswith("robots.txt: ")
    assert site.gets("/p") == 0


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/\xc3\xbc", "http://a.test/ü"),
        (b"/\xe5\x8c\x97?q=\xf0\x9f\xa6\x80", "http://a.test/北?q=🦀"),
        (b"//m\xc3\xbcnchen.test/", "http://münchen.test/"),
        (b"/\xfc", "http://a.test/ü"),  # no UTF-8
        (b"/%C3%BC", "http://a.test/%C3%BC"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 304, 307, 308])
def test_bytes_of_location_are_utf_8_where_they_can_be(status: int, location: bytes, target: str) -> None:
    response = FetchResponse("http://a.test/p", status, [b"Location: " + location])
    assert get_protocol_status("http://a.test/p", response).args == (target,)
