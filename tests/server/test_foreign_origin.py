"""Chromium with a remembered login opens a page of another site that tries all ways to change something here.

The server is on loopback and on another address, direct, behind a relay that ends TLS, and behind nginx.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from nutch2py.browser.chromium import EXECUTABLE_NAMES
from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.server.http_server import HttpServer
from nutch2py.support.invariants import not_none
from tests.import_graph import ROOT
from tests.processes import wait_until
from tests.rest.conftest import Client, settings, silent
from tests.server.running_server import serving
from tests.site.certificate import self_signed
from tests.site.server import Reply, ScriptedSite

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["silent"]
ATTACK = """
<!doctype html><title>evil</title><meta name="referrer" content="no-referrer"><body><script>
const T = "TARGET", JOB = "JOBID", EVIL = "EVILURL";
const GETS = ["/admin/stop", "/admin/stop?force=true", `/job/${JOB}/stop`, `/job/${JOB}/abort`, "/admin/stop/"];
const POSTS = {"/crawl/new": "seeds=http%3A%2F%2Fstolen.test%2F", "/crawl/stop": `id=${JOB}`,
  "/api/v1/seeds": '{"id":"stolen","urls":[]}', "/api/v1/jobs": '{"job":"checktable","crawlId":"stolen"}',
  [`/api/v1/jobs/${JOB}/stop`]: "", [`/api/v1/jobs/${JOB}/abort`]: "", "/job/create": '{"type":"READDB"}',
  "/api/v1/schedules": '{"id":"stolen","cron":"* * * * *","job":{"job":"checktable"}}',
  "/seed/create": '{"name":"stolen","seedUrls":[]}', "/config/stolen": '{"configId":"stolen"}'};
const settled = [], attempts = [];
const add = (name, fill) => { try {
  const element = document.createElement(name); fill(element); document.body.append(element);
} catch (error) { attempts.push(String(error)); } };
for (const path of GETS) {
  for (const name of ["img", "script", "iframe", "embed", "video", "audio", "track"])
    add(name, e => { e.src = T + path; });
  add("object", e => { e.data = T + path; });
  add("iframe", e => { e.sandbox = "allow-scripts"; e.src = T + path; });
  add("iframe", e => { e.srcdoc = `<img src="${T}${path}" referrerpolicy="no-referrer">`; });
  for (const rel of ["stylesheet", "prefetch", "preload", "icon", "prerender", "manifest", "modulepreload"])
    add("link", e => { e.rel = rel; e.as = rel === "preload" ? "image" : ""; e.href = T + path; });
  add("div", e => { e.style.backgroundImage = `url("${T}${path}")`; e.textContent = "x"; });
  add("form", e => { e.action = T + path; e.target = "frame-get"; document.body.append(e); e.submit(); });
  add("a", e => { e.href = T + path; e.ping = T + path; e.textContent = "x"; e.target = "frame-get";
                  e.rel = "noreferrer"; document.body.append(e); e.click(); });
  for (const mode of ["no-cors", "cors", "same-origin"]) for (const credentials of ["include", "omit"])
    for (const headers of [{}, {Accept: "application/json"}, {Accept: "*/*", "Accept-Language": "*"}])
      for (const method of ["GET", "HEAD"]) for (const keepalive of [true, false])
        settled.push(fetch(T + path, {mode, credentials, headers, method, keepalive, referrerPolicy: "no-referrer"}));
  add("script", e => { e.type = "speculationrules"; e.textContent = JSON.stringify(
    {prerender: [{source: "list", urls: [T + path]}], prefetch: [{source: "list", urls: [T + path]}]}); });
  try { new WebSocket(T.replace("http", "ws") + path); } catch (error) { attempts.push(String(error)); }
  new EventSource(T + path, {withCredentials: true});
  navigator.sendBeacon(T + path, "x");
  try { const worker = new Worker(URL.createObjectURL(new Blob([`fetch("${T}${path}",
    {mode: "no-cors", credentials: "include"})`]))); worker.onerror = () => {}; }
  catch (error) { attempts.push(String(error)); }
  window.open(T + path, "_blank", "noreferrer");
}
window.open(EVIL + "/refresh"); window.open(EVIL + "/redirect");
add("img", e => { e.src = EVIL + "/redirect"; });
add("form", e => { e.action = EVIL + "/redirect307"; e.method = "post"; e.target = "frame-307";
                   document.body.append(e); e.submit(); });
for (const [path, body] of Object.entries(POSTS)) {
  for (const enctype of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"])
    for (const policy of ["no-referrer", "unsafe-url"])
      add("form", e => {
        e.action = T + path; e.method = "post"; e.enctype = enctype; e.referrerPolicy = policy;
        e.target = `frame-${path}-${enctype}-${policy}`;
        const pairs = body.includes("=") && !body.startsWith("{") ? [...new URLSearchParams(body)] : [[body, ""]];
        for (const [name, value] of pairs) {
          const input = document.createElement("input"); input.name = name; input.value = value; e.append(input); }
        const frame = document.createElement("iframe"); frame.name = e.target;
        document.body.append(frame, e); e.submit(); });
  for (const mode of ["no-cors", "cors", "same-origin"])
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"])
      for (const method of ["POST", "PUT", "DELETE"])
        settled.push(new Promise(done => done(fetch(T + path, {method, mode, credentials: "include", body,
          headers: {"Content-Type": type}, referrerPolicy: "no-referrer"}))));
  navigator.sendBeacon(T + path, new Blob([body], {type: "text/plain"}));
  const request = new XMLHttpRequest(); request.withCredentials = true;
  request.open("POST", T + path); request.setRequestHeader("Content-Type", "text/plain"); request.send(body);
}
Promise.allSettled(settled).then(results => { window.finished = results.length; });
</script>
"""


class Target(NamedTuple):
    """A server as a browser reaches it. ``token``: "" for a server without tokens. ``job``: the id of a running job."""

    url: str
    client: Client
    folder: Path
    token: str
    job: str
    stops: list[int]


def own_address() -> str:
    """Return an address of this machine other than loopback, "" without one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


@contextmanager
def relay(address: str, target: tuple[str, int], certificate: str = "") -> Iterator[int]:
    """Pass connections on to a target, with TLS if ``certificate`` is given; yield the port."""
    command = [sys.executable, "-m", "tests.server.relay", address, *map(str, target), certificate]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield int(not_none(process.stdout, "a pipe").readline())
    finally:
        process.kill()
        process.communicate()


def find_nginx() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


NGINX_CONF = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; events {{}} worker_processes 1;
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen {address}:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {certificate};
    location / {{
      proxy_pass http://127.0.0.1:{target}; proxy_http_version 1.1; proxy_buffering off;
    }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, address: str, port: int, target: int, certificate: str) -> Iterator[int]:
    """Run nginx with TLS before a server on loopback; yield its port."""
    program = not_none(find_nginx(), "nginx")
    conf = folder / "nginx.conf"
    values = {"folder": folder, "address": address, "port": port, "certificate": certificate, "target": target}
    conf.write_text(NGINX_CONF.format(**values))
    process = subprocess.Popen([program, "-c", str(conf), "-e", str(folder / "error.log")])
    try:

        def answers() -> bool:
            with socket.socket() as connection:
                return connection.connect_ex((address, port)) == 0

        wait_until(answers)
        yield port
    finally:
        process.terminate()
        process.wait()


WAYS = ("loopback without login", "loopback", "address", "address, relay", "address, relay, TLS", "address, nginx, TLS")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Yield Chromium without its own protection of local addresses, which other browsers lack."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright")
    path = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)
    if path is None:
        pytest.skip("no Chromium")
    arguments = [
        "--no-sandbox",
        "--ignore-certificate-errors",
        "--allow-running-insecure-content",
        "--disable-popup-blocking",
        "--host-resolver-rules=MAP evil.test 127.0.0.1",
        "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,HttpsUpgrades",
    ]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(params=WAYS)
def target(request: pytest.FixtureRequest, tmp_path: Path, silent: str) -> Iterator[Target]:
    """Yield a server that is reached in each way, with a running job."""
    way = request.param
    address = "127.0.0.1" if way.startswith("loopback") else own_address()
    if not address:
        pytest.skip("this machine has no address but loopback")
    if "nginx" in way and find_nginx() is None:
        pytest.skip("no nginx")
    folder = tmp_path / "server"
    folder.mkdir()
    more = {"rest_requests_per_second": "0"}
    if "without login" not in way:
        more["rest_tokens_file"] = str(tmp_path / "tokens")
    certificate = self_signed(tmp_path, "server.test") if "TLS" in way else ""
    scheme = "https" if certificate else "http"
    with socket.create_server((address, 0)) as probe:
        port = probe.getsockname()[1]
    if "nginx" in way:
        more["search_page_address"] = f"{scheme}://{address}:{port}"
    conf = settings(folder, **more)
    token = add_token(conf, "me", Role.ADMIN) if "rest_tokens_file" in more else ""
    with ExitStack() as stack:
        listen = "127.0.0.1" if "nginx" in way else address
        server = stack.enter_context(serving(HttpServer(conf, (listen, 0))))
        if "relay" in way:
            port = stack.enter_context(relay(address, server.address, certificate))
        elif "nginx" in way:
            stack.enter_context(nginx(tmp_path, address, port, server.address[1], certificate))
        else:
            port = server.address[1]
        stops: list[int] = []
        server.app.state.authorizer.context.stop_server = lambda: stops.append(1)
        server.app.state.authorizer.context.scheduler.stop()
        client = Client(server, token)
        job = client.start_job(job="crawl", seeds=[silent], crawlId="c")["id"]
        yield Target(f"{scheme}://{address}:{port}", client, folder, token, job, stops)
        client.request("POST", f"/api/v1/jobs/{job}/abort")


@pytest.fixture
def evil(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScriptedSite]:
    """Yield the other site, with the scheme that the test names."""
    with ScriptedSite(certificate=self_signed(tmp_path, "evil.test") if request.param == "https" else None) as site:
        yield site


def stored(target: Target) -> set[str]:
    """Return the names of what the server stores, apart from the audit log and the running job's own files."""
    rest = target.folder / "rest"
    return {
        str(path.relative_to(rest))
        for path in rest.rglob("*")
        if path.is_file() and not path.name.startswith("audit.log") and target.job not in path.parts
    }


@pytest.mark.parametrize(
    ("target", "evil"),
    # the browser treats a secure page differently: its attacks on plain HTTP are mixed content
    [
        *((way, "http") for way in WAYS),
        ("loopback", "https"),
        ("address, relay", "https"),
        ("address, nginx, TLS", "https"),
    ],
    indirect=True,
)
def test_foreign_page_changes_nothing(chromium: Browser, target: Target, evil: ScriptedSite) -> None:
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(120_000)
    evil_url = evil.url("", "evil.test")
    page_text = ATTACK.replace("TARGET", target.url).replace("JOBID", target.job)
    evil.on("/", Reply(body=page_text.replace("EVILURL", evil_url).encode()))
    stop = f"{target.url}/admin/stop?force=true"
    evil.on("/refresh", Reply(body=f'<meta http-equiv="refresh" content="0;url={stop}">'.encode()))
    evil.on("/redirect", Reply(302, headers=[("Location", stop)]))
    evil.on("/redirect307", Reply(307, headers=[("Location", f"{target.url}/api/v1/jobs/{target.job}/abort")]))
    login = target.url.replace("://", f"://me:{target.token}@") if target.token else target.url
    before, audit = stored(target), target.folder / "rest" / "audit.log"
    try:
        context.add_cookies([{"name": "session", "value": "1", "url": target.url}])
        page = context.new_page()
        assert page.goto(f"{login}/crawl/new").status == 200  # type: ignore[union-attr]  # the browser remembers the login
        page.goto(f"{evil_url}/")
        page.wait_for_function("window.finished")
        rejected = f'"path":"/job/{target.job}/abort","status":403'
        wait_until(
            lambda: (
                audit.exists() and rejected in audit.read_text() and '"/admin/stop","status":403' in audit.read_text()
            )
        )
        # the login is remembered all the time: the browser's own page still opens
        assert page.goto(f"{target.url}/crawl/new").status == 200  # type: ignore[union-attr]
    finally:
        context.close()
    assert target.stops == []
    assert stored(target) == before
    assert target.client.get(f"/api/v1/jobs/{target.job}")["state"] == "running"
    assert [job["id"] for job in target.client.get("/api/v1/jobs")] == [target.job]
    changes = [line for line in audit.read_text().splitlines() if '"status":2' in line or '"status":3' in line]
    assert [line for line in changes if '"path":"/api/v1/jobs"' not in line] == []  # the running job is ours
    assert len(changes) == 1


def test_own_form_starts_and_stops_crawl_with_remembered_login(chromium: Browser, target: Target, silent: str) -> None:
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(120_000)
    login = target.url.replace("://", f"://me:{target.token}@") if target.token else target.url
    try:
        page = context.new_page()
        page.goto(f"{login}/crawl/new")
        page.fill("textarea", silent)
        page.click("button")
        page.wait_for_url("**/crawl")
        started = target.client.get("/api/v1/jobs")
        assert [job["job"] for job in started] == ["crawl", "crawl"]
        assert started[0]["requestedBy"] == ("me" if target.token else "local")
    finally:
        context.close()
        for job in target.client.get("/api/v1/jobs"):
            target.client.request("POST", f"/api/v1/jobs/{job['id']}/abort")
