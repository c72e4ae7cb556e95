"""Failures of this machine, its network, DNS and proxy change only the reason and the next try of a page."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pycurl
import pytest

from nutch2py.errors import NutchError
from nutch2py.fetcher.fetcher import Fetcher
from nutch2py.fetcher.output.page_updater import is_local_failure
from nutch2py.fetcher.protocols import ca_store, local_failures
from nutch2py.fetcher.protocols.curl_errors import FAILURE_KINDS
from nutch2py.fetcher.protocols.fetch_response import LOCAL_KINDS, FailureKind, FailureOrigin, FetchResponse
from nutch2py.fetcher.protocols.local_failures import find_local_failure, find_proxy_refusal, is_network_failure
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.fetcher.conftest import Crawl, item
from tests.site.certificate import self_signed
from tests.site.name_server import name_server
from tests.site.server import Reply, ScriptedSite

DUE = 1_700_000_000_000


@contextmanager
def serving(reply_to: Callable[[bytes], bytes]) -> Iterator[int]:
    """Reply to the first bytes of every connection, then close it; give the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(reply_to(connection.recv(65536)))

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def answering(reply: bytes) -> AbstractContextManager[int]:
    """Serve the same bytes to every connection, then close it; give the port."""
    return serving(lambda _: reply)


_PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@contextmanager
def proxy_of(reply_to: Callable[[str, int], bytes]) -> Iterator[dict[str, str]]:
    """Run a proxy whose reply depends on the URL and how often it was requested; give the properties that name it."""
    seen = Counter[str]()

    def reply(request: bytes) -> bytes:
        url = request.decode().split(" ")[1]
        seen[url] += 1
        return reply_to(url, seen[url])

    with serving(reply) as port:
        yield {"http_proxy_host": "127.0.0.1", "http_proxy_port": str(port)}


@pytest.mark.parametrize("closed", ["/p", "far.test/robots.txt"])
def test_connection_that_working_proxy_closes_is_failure_of_server(crawl: Crawl, closed: str) -> None:
    with proxy_of(lambda url, _: b"" if url.endswith(closed) else _PAGE) as proxy:
        known = [item(url, status=int(CrawlStatus.FETCHED)) for url in ("http://a.test/", "http://far.test/p")]
        conf = crawl.conf.copy()
        for name, value in proxy.items():
            conf.set(name.replace("_", "."), value)
        crawl.report = Fetcher(conf, 1, log=crawl.log.append).run(iter(known), crawl.sink)
    assert crawl.pages["http://a.test/"].status == CrawlStatus.FETCHED
    counter = "exception_connection_closed" if closed == "/p" else "exception_robots_unreachable"
    assert_of_server(crawl, crawl.pages["http://far.test/p"], counter)


def test_connection_that_proxy_closes_once_is_requested_again(crawl: Crawl) -> None:
    with proxy_of(lambda url, number: b"" if url.endswith("/p") and number == 1 else _PAGE) as proxy:
        page = fetch_known_page(crawl, "http://far.test/p", **proxy)
    assert page.content == b"ok"


@pytest.mark.parametrize("responses", [0, 1])
def test_connection_that_failing_proxy_closes_is_local(crawl: Crawl, responses: int) -> None:
    """It closes all connections, after no response at all or after robots.txt was read."""
    with proxy_of(lambda url, number: _PAGE if url.endswith("robots.txt") and number <= responses else b"") as proxy:
        page = fetch_known_page(crawl, "http://far.test/p", **proxy)
    assert_local(crawl, page, FailureKind.PROXY)


def test_direct_response_does_not_speak_for_the_proxy(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/d", Reply(body=b"direct"))
    with proxy_of(lambda *_: b"") as proxy:
        conf = crawl.conf.copy()
        for name, value in {**proxy, "http_proxy_exception_list": "a.test"}.items():
            conf.set(name.replace("_", "."), value)
        known = [item(url, status=int(CrawlStatus.FETCHED)) for url in (site.url("/d", "a.test"), "http://far.test/p")]
        crawl.report = Fetcher(conf, 1, log=crawl.log.append).run(iter(known), crawl.sink)
    assert is_local_failure(crawl.pages["http://far.test/p"].protocol_status)
    assert crawl.pages[site.url("/d", "a.test")].content == b"direct"


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def fetch_known_page(crawl: Crawl, url: str, **properties: str) -> WebPage:
    """Fetch a page that was fetched before; return the changes of its row."""
    known = item(url, status=int(CrawlStatus.FETCHED), fetch_time=DUE, retries_since_fetch=1)
    conf = crawl.conf.copy()
    for name, value in properties.items():
        conf.set(name.replace("_", "."), value)
    crawl.report = Fetcher(conf, 2, log=crawl.log.append).run(iter([known]), crawl.sink)
    return crawl.pages[url]


def changed_cells(page: WebPage) -> set[bytes]:
    """Return the changed columns of family f."""
    mutation = page.mutation()
    assert mutation is not None
    assert mutation.puts.keys() <= {b"f", b"mk"}
    return set(mutation.puts[b"f"])


def assert_local(crawl: Crawl, page: WebPage, kind: FailureKind) -> None:
    assert crawl.report.counters[f"exception_{kind.value}"] == 1, dict(crawl.report.counters)
    assert crawl.report.counters["LOCAL_FAILURE"] == 1
    assert crawl.report.counters["EXCEPTION"] == 0
    assert is_local_failure(page.protocol_status)
    assert page.fetch_time > DUE
    assert changed_cells(page) == {b"ts", b"prot"}
    assert Mark.FETCH not in page.markers


def assert_of_server(crawl: Crawl, page: WebPage, kind: str) -> None:
    assert crawl.report.counters[kind] == 1, dict(crawl.report.counters)
    assert crawl.report.counters["LOCAL_FAILURE"] == 0
    assert not is_local_failure(page.protocol_status)
    assert Mark.FETCH in page.markers


@pytest.mark.parametrize(
    ("properties", "decides"),
    [
        ({"http_filter_ipaddress_exclude": "loopback"}, "http.filter.ipaddress.exclude"),
        ({"http_filter_ipaddress_include": "192.0.2.0/24"}, "http.filter.ipaddress.include"),
        ({"http_filter_ipaddress_exclude": "127.0.0.0/8", "http_filter_ipaddress_include": "127.0.0.1"}, "exclude"),
    ],
)
def test_page_behind_address_filter_stays_fetched(
    site: ScriptedSite, crawl: Crawl, properties: dict[str, str], decides: str
) -> None:
    page = fetch_known_page(crawl, site.url("/p", "a.test"), **properties)
    assert_local(crawl, page, FailureKind.ADDRESS_FILTER)
    assert page.protocol_status is not None
    assert decides in page.protocol_status.args[0]
    assert site.seen == []


_TUNNEL_REFUSALS = [
    b"HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 403 Denied\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 502 Bad\r\nProxy-Status: p; error=proxy_configuration_error\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 503 Bad\r\nX-Squid-Error: ERR_CANNOT_FORWARD 0\r\nContent-Length: 0\r\n\r\n",
    b"",
]


@pytest.mark.parametrize("reply", _TUNNEL_REFUSALS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_page_behind_refusing_proxy_stays_fetched(crawl: Crawl, reply: bytes, scheme: str) -> None:
    if scheme == "http" and b" 403 " in reply:
        pytest.skip("the server may have sent it")
    with answering(reply) as port:
        proxy = {"http_proxy_host": "127.0.0.1", "http_proxy_port": str(port)}
        page = fetch_known_page(crawl, f"{scheme}://far.example/p", **proxy)
    assert_local(crawl, page, FailureKind.PROXY)


@pytest.mark.parametrize("kind", ["HTTP", "SOCKS"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_page_behind_dead_proxy_stays_fetched(crawl: Crawl, kind: str, scheme: str) -> None:
    proxy = {"http_proxy_host": "127.0.0.1", "http_proxy_port": str(closed_port()), "http_proxy_type": kind}
    page = fetch_known_page(crawl, f"{scheme}://far.example/p", **proxy)
    assert_local(crawl, page, FailureKind.PROXY)
    assert page.protocol_status is not None
    assert "http.proxy.host" in page.protocol_status.args[0]


def test_page_behind_unknown_proxy_stays_fetched(crawl: Crawl) -> None:
    page = fetch_known_page(crawl, "http://far.example/p", http_proxy_host="proxy.invalid")
    assert_local(crawl, page, FailureKind.PROXY)


@pytest.mark.parametrize(
    ("reply", "counter"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "EXCEPTION"),
        (b"HTTP/1.1 504 T\r\nProxy-Status: p; error=connection_timeout\r\nContent-Length: 0\r\n\r\n", "EXCEPTION"),
        (b"HTTP/1.1 503 T\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\nContent-Length: 0\r\n\r\n", "EXCEPTION"),
        (b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", "GONE"),
    ],
)
def test_failure_of_server_behind_proxy_counts(crawl: Crawl, reply: bytes, counter: str) -> None:
    with answering(reply) as port:
        proxy = {"http_proxy_host": "127.0.0.1", "http_proxy_port": str(port), "http_robot_rules_allowlist": "far.test"}
        page = fetch_known_page(crawl, "http://far.test/p", **proxy)
    assert_of_server(crawl, page, counter)


def test_page_without_dns_server_stays_fetched(crawl: Crawl) -> None:
    dns = {"http_dns_servers": f"127.0.0.1:{closed_port()}", "http_dns_timeout": "0.1", "http_hosts_file": ""}
    page = fetch_known_page(crawl, "http://lost.example/p", **dns)
    assert_local(crawl, page, FailureKind.DNS_UNAVAILABLE)


def test_page_whose_dns_server_only_fails_stays_fetched(crawl: Crawl) -> None:
    with name_server() as server:
        dns = {"http_dns_servers": server.address, "http_dns_timeout": "0.1", "http_hosts_file": ""}
        page = fetch_known_page(crawl, "http://broken.example/p", **dns)
    assert_local(crawl, page, FailureKind.DNS_UNAVAILABLE)


def test_unknown_host_is_failure_of_server(crawl: Crawl) -> None:
    with name_server() as server:
        dns = {"http_dns_servers": server.address, "http_dns_timeout": "1", "http_hosts_file": ""}
        page = fetch_known_page(crawl, "http://none.example/p", **dns)
    assert_of_server(crawl, page, "exception_unknown_host")


def test_failing_name_among_working_ones_is_failure_of_server(site: ScriptedSite, crawl: Crawl) -> None:
    """The DNS servers answer for another host in the meantime, so the domain's own servers fail."""
    with name_server() as server:
        conf = crawl.conf.copy()
        conf.set("http.dns.servers", server.address)
        conf.set("http.dns.timeout", "0.5")
        conf.set("http.hosts.file", "")
        crawl.run(conf, site.url("/p", "broken.example"), site.url("/p", "slow-100.example"))
    assert crawl.report.counters["exception_unknown_host"] == 1
    assert crawl.report.counters["LOCAL_FAILURE"] == 0


@pytest.mark.parametrize("resolver_error", [socket.EAI_AGAIN, socket.EAI_NONAME])
def test_system_resolver_separates_unknown_host_from_no_answer(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, resolver_error: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(resolver_error, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    page = fetch_known_page(crawl, "http://name.invalid/p", http_dns_resolver="system", http_hosts_file="")
    if resolver_error == socket.EAI_AGAIN:
        assert_local(crawl, page, FailureKind.DNS_UNAVAILABLE)
    else:
        assert_of_server(crawl, page, "exception_unknown_host")


@pytest.mark.parametrize("url", ["ftp://a.test/p", "file:/etc/hostname"])
def test_page_of_disabled_protocol_stays_fetched(crawl: Crawl, url: str) -> None:
    page = fetch_known_page(crawl, url)
    assert_local(crawl, page, FailureKind.PROTOCOL_DISABLED)


def test_refused_connection_is_failure_of_server(crawl: Crawl) -> None:
    page = fetch_known_page(crawl, f"http://a.test:{closed_port()}/p")
    assert_of_server(crawl, page, "exception_connection_refused")


def test_internal_error_leaves_page_as_it_is(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("defect")

    site.on("/p", Reply(body=b"<p>new</p>"))
    monkeypatch.setattr("nutch2py.fetcher.output.page_updater.detect_content_type", fail)
    page = fetch_known_page(crawl, site.url("/p", "a.test"))
    assert page.protocol_status == ProtocolStatus(Code.FAILED, ("RuntimeError: defect", "local"))
    assert changed_cells(page) == {b"ts", b"prot"}


def test_network_failure_requires_that_no_address_has_a_route(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = {"192.0.2.1"}
    monkeypatch.setattr(local_failures, "has_route", lambda address: address in routes)
    assert is_network_failure(errno.EHOSTUNREACH, ("192.0.2.2",))
    assert is_network_failure(errno.ENETUNREACH, ())
    assert is_network_failure(errno.ENETUNREACH, ("2001:db8::1", "192.0.2.2"))
    assert not is_network_failure(errno.ENETUNREACH, ("2001:db8::1", "192.0.2.1"))
    assert not is_network_failure(errno.EHOSTUNREACH, ("192.0.2.1",))
    assert not is_network_failure(0, ())


def test_page_without_network_route_stays_fetched(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nutch2py.fetcher.protocols.curl_transfer.is_network_failure", lambda *_: True)
    page = fetch_known_page(crawl, "http://255.255.255.255/p")  # to which no system connects by TCP
    assert_local(crawl, page, FailureKind.NETWORK)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "full"), FailureKind.DISK),
        (OSError(errno.EIO, "broken"), FailureKind.DISK),
        (OSError(errno.EROFS, "read-only"), FailureKind.DISK),
        (OSError(errno.ENETUNREACH, "no route"), FailureKind.NETWORK),
        (OSError(errno.EMFILE, "files"), FailureKind.SOCKET),
        (type("ProxyError", (Exception,), {})("dead"), FailureKind.PROXY),
        (type("ClientHttpProxyError", (Exception,), {"status": 407})("login"), FailureKind.PROXY),
    ],
)
def test_exception_of_machine_is_recognized(error: Exception, kind: FailureKind) -> None:
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = error
    failure = find_local_failure(wrapped)
    assert failure is not None
    assert (failure.kind, failure.is_local) == (kind, True)


@pytest.mark.parametrize("error", [OSError(errno.ECONNRESET, "x"), ValueError("x"), NutchError("x"), TimeoutError()])
def test_exception_of_server_is_not_local(error: Exception) -> None:
    assert find_local_failure(error) is None


def test_tls_files_of_machine_are_local() -> None:
    for code in (pycurl.E_SSL_CACERT_BADFILE, pycurl.E_SSL_CERTPROBLEM, pycurl.E_SSL_CRL_BADFILE):
        assert FAILURE_KINDS[code].origin is FailureOrigin.LOCAL
    for code in (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION):
        assert FAILURE_KINDS[code].origin is FailureOrigin.SERVER


def test_every_kind_has_an_origin() -> None:
    by_origin = {origin: {kind for kind in FailureKind if kind.origin is origin} for origin in FailureOrigin}
    assert by_origin[FailureOrigin.LOCAL] == LOCAL_KINDS
    assert {FailureKind.TIMEOUT, FailureKind.REFUSED, FailureKind.DNS} <= by_origin[FailureOrigin.SERVER]


def test_response_without_proxy_headers_is_of_server() -> None:
    assert find_proxy_refusal(FetchResponse("", 403)) == ""
    assert find_proxy_refusal(FetchResponse("", 200, [b"Proxy-Status: p; error=proxy_internal_error"])) == ""
    assert "407" in find_proxy_refusal(FetchResponse("", 407))


def _store_of(kind: str, folder: Path) -> tuple[str, str]:
    """Return SSL_CERT_FILE and SSL_CERT_DIR of a store without certificates."""
    empty = folder / "store"
    empty.mkdir()
    (empty / "README").write_text("no certificate")
    (empty / "unhashed.pem").write_text("-----BEGIN CERTIFICATE-----")
    (folder / "empty.pem").write_text("")
    (folder / "comments.pem").write_text("# none\n")
    return {
        "missing file": (str(folder / "none.pem"), ""),
        "empty file": (str(folder / "empty.pem"), ""),
        "file of comments": (str(folder / "comments.pem"), ""),
        "folder as file": (str(empty), ""),
        "missing folder": ("", str(folder / "none")),
        "empty folder": ("", str(empty)),
        "missing file and empty folder": (str(folder / "none.pem"), str(empty)),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["missing file", "empty file", "file of comments", "folder as file", "missing folder", "empty folder",
     "missing file and empty folder"],
)  # fmt: skip
def test_page_without_trusted_certificates_on_this_machine_stays_due(
    tmp_path: Path, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file, directory = _store_of(kind, tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", file)
    monkeypatch.setenv("SSL_CERT_DIR", directory)
    with ScriptedSite(certificate=self_signed(tmp_path, "a.test")) as tls_site:
        page = fetch_known_page(crawl, tls_site.url("/p", "a.test"), http_tls_certificates_check="true")
    assert_local(crawl, page, FailureKind.TLS_SETUP)
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "unable to get local issuer certificate"
    failure = find_local_failure(error)
    assert failure is not None
    assert failure.kind is FailureKind.TLS_SETUP


def test_page_without_trusted_certificates_of_the_system_stays_due(
    tmp_path: Path, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ca_store, "SYSTEM_FILES", ())
    paths = ssl.get_default_verify_paths()._replace(openssl_cafile="", openssl_capath=str(tmp_path / "none"))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    with ScriptedSite(certificate=self_signed(tmp_path, "a.test")) as tls_site:
        page = fetch_known_page(crawl, tls_site.url("/p", "a.test"), http_tls_certificates_check="true")
    assert_local(crawl, page, FailureKind.TLS_SETUP)


def test_store_of_certificates_is_read_once_for_each_version(tmp_path: Path) -> None:
    for kind in ("file", "folder"):
        place = tmp_path / kind
        place.mkdir()
        certificates = place / "0123abcd.0"
        certificates.write_text("-----BEGIN CERTIFICATE-----")
        store = ca_store.CaStore(**{kind: str(certificates if kind == "file" else place)})
        version = certificates.stat()
        assert store.has_certificates()
        certificates.write_text("-----BEGIN C-E-R-T-I-F-----")  # of the same size
        os.utime(certificates, ns=(version.st_atime_ns, version.st_mtime_ns))
        assert store.has_certificates()
        certificates.unlink()
        assert not store.has_certificates()


def test_certificates_of_environment_are_trusted_and_others_are_of_server(
    tmp_path: Path, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    (tmp_path / "other").mkdir()
    other = self_signed(tmp_path / "other", "a.test")
    with ScriptedSite(certificate=self_signed(tmp_path, "a.test")) as tls_site:
        monkeypatch.setenv("SSL_CERT_FILE", other)
        page = fetch_known_page(crawl, tls_site.url("/p", "a.test"), http_tls_certificates_check="true")
        assert_of_server(crawl, page, "exception_tls")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "a.test.pem"))
        page = fetch_known_page(crawl, tls_site.url("/q", "a.test"), http_tls_certificates_check="true")
        assert crawl.report.counters["exception_tls"] == crawl.report.counters["LOCAL_FAILURE"] == 0
