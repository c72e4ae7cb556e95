"""All requests of a page pass the address filter: a canary at an excluded address is never reached."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nutch2py.browser import browser_process
from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.browser.filtering_proxy import FilteringProxy
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader.transport import FilteringEventLoop
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.records.webpage import CrawlStatus
from tests.browser.canary import Canary
from tests.browser.conftest import Render
from tests.site.server import Reply, ScriptedSite

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_Ask = Callable[[bytes], Awaitable[_Streams]]
_T = TypeVar("_T")

ASKING = """
<div id=root></div><link rel=stylesheet href="http://CANARY/style.css"><link rel=preconnect href="http://CANARY/">
<link rel=prefetch href="http://CANARY/prefetch"><link rel=dns-prefetch href="//inside.test">
<img src="http://CANARY/image.png"><iframe src="http://CANARY/frame"></iframe>
<script src="http://CANARY/script.js"></script>
<object data="http://CANARY/object"></object><video src="http://CANARY/video"></video>
<iframe src="/redirect"></iframe><iframe src="file:///etc/passwd"></iframe><script src="/redirect"></script>
<script>
const tried = [];
const attempt = async (name, act) => {
  try { await Promise.race([act(), new Promise((_, no) => setTimeout(no, 2500, "late"))]);
        tried.push(name + " got through"); }
  catch (error) { tried.push(name); }
};
const opened = (socket) => new Promise((yes, no) => { socket.onopen = yes; socket.onerror = no; });
const run = (code) => new Promise((yes, no) => {
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  worker.onmessage = (event) => event.data === "through" ? yes() : no();
  worker.onerror = no;
});
const work = 'fetch("http://CANARY/worker", {mode: "no-cors"})' +
  '.then(() => postMessage("through"), () => postMessage("no"))';
const peer = async () => {
  const peer = new RTCPeerConnection({iceServers: [
    {urls: ["stun:CANARY", "turn:CANARY?transport=tcp"], username: "a", credential: "b"}]});
  peer.createDataChannel("x");
  await peer.setLocalDescription(await peer.createOffer());
  await new Promise((yes) => setTimeout(yes, 1500));
  throw "silent";
};
const transport = async () => { const t = new WebTransport("https://CANARY/"); await t.ready; };
Promise.all([
  attempt("fetch", () => fetch("http://CANARY/fetch", {mode: "no-cors"})),
  attempt("numbers", () => fetch("http://DECIMAL/decimal", {mode: "no-cors"})),
  attempt("mapped", () => fetch("http://[::ffff:127.0.0.2]:PORT/mapped", {mode: "no-cors"})),
  attempt("name", () => fetch("http://inside.test:PORT/name", {mode: "no-cors"})),
  attempt("tls", () => fetch("https://CANARY/tls", {mode: "no-cors"})),
  attempt("redirected", () => fetch("/redirect", {mode: "no-cors"})),
  attempt("beacon", async () => { navigator.sendBeacon("http://CANARY/beacon"); throw "unknown"; }),
  attempt("socket", () => opened(new WebSocket("ws://CANARY/socket"))),
  attempt("events", () => opened(new EventSource("http://CANARY/events"))),
  attempt("worker", () => run(work)),
  attempt("service", () => navigator.serviceWorker.register("/sw.js")),
  attempt("peer", peer),
  attempt("transport", transport),
]).then(() => { document.getElementById("root").textContent = "tried: " + tried.join(", "); });
</script>
"""


@pytest.mark.parametrize("without", ["", "our script"])
def test_page_requests_to_excluded_addresses_are_blocked(
    site: ScriptedSite, render: Render, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    if without:  # then an option of Chromium alone is between WebRTC and the canary
        monkeypatch.setattr(browser_process, "INIT_SCRIPT", "")
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("127.0.0.1 a.test\n127.0.0.2 inside.test\n", encoding="utf-8")
    with Canary() as canary:
        at = f"{canary.address}:{canary.port}"
        page = (
            ASKING.replace("CANARY", at)
            .replace("DECIMAL", f"2130706434:{canary.port}")
            .replace("PORT", str(canary.port))
        )
        site.on("/", Reply(body=page.encode()))
        site.on("/redirect", Reply(302, headers=[("Location", f"http://{at}/redirected")]))
        done = render(
            site.url("/", "a.test"),
            rules="all render selector=#root:not(:empty)",
            http_filter_ipaddress_exclude="127.0.0.2/32",
            http_hosts_file=str(hosts),
            browser_load_images="true",
            browser_load_media="true",
        )
        assert canary.caught == []
    text = (done.content or b"").decode()
    assert done.status == CrawlStatus.FETCHED
    assert done.protocol_status is not None
    assert done.protocol_status.args == ("rendered",)
    tried = re.search(r"tried: ([a-z, ]*)", text)
    assert tried is not None
    assert sorted(tried[1].split(", ")) == sorted(re.findall(r'attempt\("(\w+)"', ASKING))
    assert "root:" not in text


def test_page_requests_to_allowed_addresses_are_sent(site: ScriptedSite, render: Render) -> None:
    with Canary() as canary:
        ask = f"new WebSocket('ws://127.0.0.2:{canary.port}/').onclose = () => document.body.append(made)"
        site.on("/", Reply(body=f"<body><script>const made = document.createElement('b'); {ask}</script>".encode()))
        render(site.url("/"), rules="all render selector=b")
        assert canary.caught


def beside_a_proxy(conf: Configuration, lane: ContextTraffic, work: Callable[[_Ask], Coroutine[Any, Any, _T]]) -> _T:
    """Run ``use`` with a proxy; its argument sends a request on a connection of its own."""
    http = HttpSettings.from_conf(conf)

    def make_loop() -> FilteringEventLoop:
        loop = FilteringEventLoop()
        loop.dns_cache = http.dns_cache
        return loop

    async def run() -> _T:
        proxy = FilteringProxy(http, {"blocked.test"})
        await proxy.start()
        proxy.add_context(lane)
        login = base64.b64encode(f"{lane.username}:{lane.password}".encode())

        async def ask(request: bytes) -> _Streams:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(request.replace(b"LOGIN", b"Proxy-Authorization: Basic " + login))
            return reader, writer

        try:
            return await work(ask)
        finally:
            await proxy.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(run())


def proxied(conf: Configuration, *requests: bytes) -> list[bytes]:
    """Send requests to a proxy, each on its own connection, and return the first lines of the responses."""

    async def work(ask: _Ask) -> list[bytes]:
        found = []
        for request in requests:
            reader, writer = await ask(request)
            found.append(await asyncio.wait_for(reader.readline(), 10))
            writer.close()
        return found

    return beside_a_proxy(conf, ContextTraffic(5, 10_000), work)


def test_requests_beyond_limit_wait_until_page_ends(browser_conf: Configuration, site: ScriptedSite) -> None:
    """A page notified of a rejection would retry, and the browser would report each one."""
    site.on("/", Reply(body=b"x"))
    request = f"GET {site.url('/')} HTTP/1.1\r\nHost: x\r\nLOGIN\r\n\r\n".encode()
    tunnel = f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\nLOGIN\r\n\r\n".encode()
    lane = ContextTraffic(1, 10_000)

    async def work(ask: _Ask) -> list[bytes]:
        reader, writer = await ask(request)
        found = [await reader.readline()]
        writer.close()
        beyond = [await ask(each) for each in (request, tunnel, request)]
        while lane.blocked_requests["limit"] < len(beyond):
            await asyncio.sleep(0.01)
        reader, writer = await ask(request.replace(b"LOGIN", b"A: b"))
        found.append(await reader.readline())  # every response has arrived by now
        writer.close()
        assert (lane.limit_hit, [waits.at_eof() for waits, _ in beyond[1:]]) == ("requests", [False] * 2)
        lane.finish_page()
        for waited, writer in beyond:
            found.append(await waited.read())
            writer.close()
        return found

    assert [line[9:12] for line in beside_a_proxy(browser_conf, lane, work)] == [b"200", b"407", b"", b"", b""]
    assert site.gets("/") == 1


def test_proxy_authentication_is_used(browser_conf: Configuration, site: ScriptedSite) -> None:
    site.on("/", Reply(body=b"x"))
    ask = f"GET {site.url('/')} HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n".encode()
    wrong = base64.b64encode(b"a:b")
    none, other, ours = proxied(
        browser_conf, ask % b"A: b", ask % (b"Proxy-Authorization: Basic " + wrong), ask % b"LOGIN"
    )
    assert [line.split()[1] for line in (none, other, ours)] == [b"407", b"407", b"200"]
    assert site.gets("/") == 1


@pytest.mark.parametrize(
    "where",
    [
        "127.0.0.2:PORT",
        "inside.test:PORT",
        "[::ffff:127.0.0.2]:PORT",
        "2130706434:PORT",
        "0x7f.2:PORT",
        "blocked.test:PORT",
    ],
)
def test_proxy_does_not_connect_to_excluded_address(browser_conf: Configuration, tmp_path: Path, where: str) -> None:
    hosts = tmp_path / "inside.txt"
    hosts.write_text("127.0.0.2 inside.test\n127.0.0.1 sub.blocked.test\n", encoding="utf-8")
    browser_conf.set("http.hosts.file", str(hosts))
    browser_conf.set("http.filter.ipaddress.exclude", "127.0.0.2/32")
    with Canary() as canary:
        where = where.replace("PORT", str(canary.port))
        tunnel = f"CONNECT {where} HTTP/1.1\r\nLOGIN\r\n\r\n".encode()
        plain = f"GET http://{where}/ HTTP/1.1\r\nLOGIN\r\n\r\n".encode()
        assert [line[9:12] for line in proxied(browser_conf, tunnel, plain)] == [b"403", b""]
        assert canary.caught == []


def test_rebound_dns_name_is_checked_again(
    browser_conf: Configuration, site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.on("/", Reply(body=b"x"))
    answers = iter([("127.0.0.1",), ("127.0.0.2",)])

    async def rebinding(_: DnsCache, host: str) -> tuple[str, ...]:
        assert host == "rebinding.test"
        return next(answers)

    monkeypatch.setattr(DnsCache, "resolve", rebinding)
    browser_conf.set("http.filter.ipaddress.exclude", "127.0.0.2/32")
    with Canary(port=site.port) as canary:
        ask = f"GET http://rebinding.test:{site.port}/ HTTP/1.1\r\nHost: rebinding.test\r\nLOGIN\r\n\r\n".encode()
        first, second = proxied(browser_conf, ask, ask)
        assert (first[9:12], second) == (b"200", b"")
        assert canary.caught == []
