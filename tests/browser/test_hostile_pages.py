"""Hostile pages: each ends with a status within its limits, and an honest page next to them is unaffected."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py.browser import browser_pool, browser_process, chromium, tab_renderer
from nutch2py.browser.tab_renderer import PageSnapshot
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.records.webpage import WebPage
from tests.browser.conftest import Render
from tests.processes import alive, commands, wait_until
from tests.site.server import Reply, ScriptedSite

HONEST = b"<div id=root></div><script>setTimeout(() => root.textContent = 'honest ' + 'work'.repeat(2), 1500)</script>"
HOSTILE = {
    "/loop": b"<p>seen</p><script>for (;;);</script>",
    "/rest": b"<p>seen</p><script>setInterval(() => fetch('/tick'), 400)</script>",
    "/many": b"<p>seen</p><script>for (let n = 0; n < 10000; n++) fetch('/tick?' + n)</script>",
    "/bytes": b"<p>seen</p><script>const on = () => fetch('/big', {cache: 'no-store'}).then(on); on()</script>",
    "/reload": b"<p>seen</p><script>location.reload()</script>",
    "/away": b"<p>seen</p><script>location.href = '/away?' + Math.random()</script>",
    "/history": b"<p>seen</p><script>for (let n = 0; ; n++) history.pushState({}, '', '/history/' + n)</script>",
    "/heap": b"<p>seen</p><script>const all = []; for (;;) all.push(new Array(1e6).fill(Math.random()))</script>",
    "/memory": b"""<p>seen</p><script>const all = []; const on = () => {
        all.push(new Uint8Array(64 << 20).fill(1)); if (all.length < 64) setTimeout(on, 20); }; on()</script>""",
    "/windows": b"<p>seen</p><script>for (let n = 0; n < 50; n++) window.open('/tick')</script>",
    "/dialogs": b"<p>seen</p><script>alert(1); confirm(2); prompt(3); print()</script>",
    "/download": b"<p>seen</p><a id=a href=/big download>x</a><script>a.click()</script>",
    "/huge": b"<p>seen</p><div id=x hidden></div><script>x.append('x'.repeat(3e6))</script>",
    "/deep": b"<p>seen</p><script>let at = document.body; for (let n = 0; n < 20000; n++) {"
    b" const made = document.createElement('b'); at.append(made); at = made; }</script>",
    "/frames": b"""<p>seen</p><script>for (let n = 0; n < 1000; n++) {
        const made = document.createElement('iframe'); made.src = '/frame?' + n; document.body.append(made);
        }</script>""",
    "/blank": b"""<p>seen</p><script>for (let n = 0; n < 300; n++) {
        document.body.append(document.createElement('iframe')); window.open('about:blank'); }</script>""",
    "/leave": b"""<p>seen</p><script>addEventListener('beforeunload', (event) => {
        event.preventDefault(); event.returnValue = 'stay'; for (;;) alert('stay'); });</script>""",
    "/alerts": b"<p>seen</p><script>for (;;) { alert(1); print(); }</script>",
    "/again": b"<p>seen</p><script>for (let n = 0; n < 9; n++) setInterval(() => { for (;;); }, 10)</script>",
    "/data": b"""<p>seen</p><script>const url = 'data:text/html,' + 'x'.repeat(1e8); const made = new Image();
        made.src = url; const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame);
        fetch(url); </script>""",
    "/asking": b"""<p>seen</p><script>const say = (word) => () => document.body.append(word + ' '); for (const ask of [
        () => navigator.usb.requestDevice({filters: []}), () => navigator.clipboard.readText(),
        () => navigator.mediaDevices.getUserMedia({video: true}),
        async () => { if (await Notification.requestPermission() != 'granted') throw 0; },
        () => new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no)),
        () => showOpenFilePicker(), () => navigator.bluetooth.requestDevice({acceptAllDevices: true}) ])
        (async () => { await ask(); })().then(say('granted'), say('denied'))</script>""",
    "/refresh": b"<meta http-equiv=refresh content='0'><p>seen</p>",
    "/closing": b"<p>seen</p><script>window.close(); open('', '_self').close()</script>",
    "/store": b"""<p>seen</p><script>const asked = indexedDB.open('x', 1);
        asked.onupgradeneeded = () => asked.result.createObjectStore('all');
        asked.onsuccess = () => { let n = 0; const on = () => {
            const put = asked.result.transaction('all', 'readwrite').objectStore('all').put(
                crypto.getRandomValues(new Uint8Array(65536)).buffer.transfer(32 << 20), n++);
            put.onsuccess = () => { if (n < 100) on(); }; }; on(); }</script>""",
    "/workers": b"""<p>seen</p><div id=root></div><script>
        const code = URL.createObjectURL(new Blob(['for (;;); postMessage(1)']));
        for (let n = 0; n < 40; n++) new Worker(code).onmessage = () => { root.textContent = 'done'; }</script>""",
    "/asking-workers": b"""<p>seen</p><div id=root></div><script>const code = URL.createObjectURL(new Blob([
        `onmessage = async ({data}) => { for (let n = 0; ; n++) await fetch(data + n).catch(() => 0) }`]));
        for (let n = 0; n < 4; n++) new Worker(code).postMessage(location.origin + `/work?${n}.`)</script>""",
    "/console": b"<p>seen</p><script>for (;;) console.log('x'.repeat(1e5), document)</script>",
    "/errors": b"""<p>seen</p><script>setInterval(() => {
        for (let n = 0; n < 1000; n++) Promise.reject(new Error('x'.repeat(1000))); }, 1)</script>""",
    "/title": b"""<p>seen</p><script>setInterval(() => {
        for (let n = 0; n < 1000; n++) document.title = Math.random(); }, 1)</script>""",
    "/popups": b"<p>seen</p><script>for (;;) open('about:blank', Math.random())</script>",
    "/wasm": b"""<p>seen</p><script>const code = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2,
        1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 9, 1, 7, 0, 3, 64, 12, 0, 11, 11]);
        new WebAssembly.Instance(new WebAssembly.Module(code)).exports.f()</script>""",
    "/shared": b"""<p>seen</p><div id=root></div><script>const code = `for (let n = 0; n < 500; n++)
        fetch('${location.origin}/shared?' + n).catch(() => 0); for (;;);`;
        new SharedWorker(URL.createObjectURL(new Blob([code])))</script>""",
    "/endless": b"<p>seen</p><script src=/drip></script>",
    "/mail": b"""<p>seen</p><script>setInterval(() => { location.href = 'mailto:x@y'; location.href = 'tel:1'; }, 1)
        </script>""",
    "/attach": b"""<p>seen</p><script>setInterval(() => { for (let n = 0; n < 200; n++) {
        const made = document.createElement('iframe'); document.body.append(made); made.remove(); } }, 1)</script>""",
    "/sockets": b"""<p>seen</p><script>for (let n = 0; n < 3000; n++)
        new WebSocket(`ws://${location.host}/socket?${n}`)</script>""",
    "/blob": b"""<p>seen</p><a id=a download=x>x</a><script>const all = Array(64).fill(new Uint8Array(16 << 20));
        a.href = URL.createObjectURL(new Blob(all)); a.click()</script>""",
    "/forest": b"""<p>seen</p><script>const grow = (within, depth) => { for (let n = 0; n < 6; n++) {
        const made = within.createElement('iframe'); within.body.append(made);
        if (depth) grow(made.contentDocument, depth - 1); } }; grow(document, 5)</script>""",
    "/schemes": b"""<p>seen</p><script>for (const url of ['chrome://crash', 'chrome://kill', 'devtools://x',
        'file:///etc/passwd', 'view-source:http://x/', 'filesystem:http://x/', 'data:text/html,x']) {
        const made = document.createElement('iframe'); made.src = url; document.body.append(made); open(url);
        const link = document.createElement('a'); link.href = url; link.click(); }</script>""",
    "/tampered": b"<p>seen</p><script>document.__proto__ = null; Node.prototype.cloneNode = null;"
    b"Object.defineProperty(document.documentElement, 'outerHTML', {get() { for (;;); }});"
    b"Promise.prototype.then = () => { for (;;); }; JSON.stringify = Array.prototype.push = null;</script>",
}
CLOCKS = ("browser.time.limit", "browser.idle.limit")
RENDERED, FAILED, MOVED = Code.SUCCESS, Code.EXCEPTION, Code.TEMP_MOVED
EXPECTED: dict[str, tuple[Code | None, str]] = {
    "/loop": (RENDERED, "browser.time.limit"),
    "/rest": (RENDERED, "browser.idle.limit"),
    "/many": (RENDERED, "browser.requests.limit"),
    "/bytes": (RENDERED, "browser.bytes.limit"),
    "/reload": (FAILED, "browser.loads.limit"),
    "/away": (MOVED, ""),
    "/memory": (FAILED, "browser.memory.limit"),
    "/deep": (FAILED, "the page crashed"),
    "/huge": (RENDERED, ""),
    "/closing": (RENDERED, ""),
    "/tampered": (RENDERED, ""),
    "/history": (RENDERED, "browser.time.limit"),
    "/heap": (FAILED, ""),  # by its heap, its memory or its time, whichever is first
    "/windows": (RENDERED, ""),
    "/dialogs": (RENDERED, ""),
    "/download": (MOVED, ""),
    "/frames": (RENDERED, "browser.requests.limit"),
    "/blank": (RENDERED, ""),
    "/leave": (RENDERED, ""),
    "/alerts": (RENDERED, "browser.time.limit"),
    "/again": (RENDERED, ""),
    "/data": (None, ""),  # or it exceeds its memory limit
    "/asking": (RENDERED, ""),
    "/refresh": (FAILED, "browser.loads.limit"),
    "/store": (RENDERED, ""),
    "/workers": (RENDERED, "browser.time.limit"),
    "/asking-workers": (RENDERED, "browser.requests.limit"),
    "/console": (RENDERED, "browser.time.limit"),
    "/errors": (RENDERED, ""),
    "/title": (None, ""),  # the driver is notified of each change: it may be too busy to return the document in time
    "/popups": (RENDERED, "browser.time.limit"),
    "/wasm": (RENDERED, "browser.time.limit"),
    "/shared": (RENDERED, "browser.requests.limit"),
    "/endless": (RENDERED, "browser.time.limit"),
    "/mail": (None, ""),  # the browser itself is busy with it
    "/attach": (RENDERED, ""),
    "/sockets": (RENDERED, ""),  # the browser opens one after the other to a server, with growing delays after failures
    "/blob": (None, ""),  # or it exceeds its memory limit
    "/forest": (None, ""),  # likewise
    "/schemes": (None, ""),  # or the browser shows an error in its place
}
SHORT = list(EXPECTED)[: list(EXPECTED).index("/tampered") + 1]


def wrong_of(path: str, page: WebPage) -> ProtocolStatus | None:
    """Return the status of a page that is not as expected, or None."""
    honest = path.startswith("/honest/")
    code, words = (Code.SUCCESS, "") if honest else EXPECTED[path]
    status = page.protocol_status
    assert status is not None
    if words == "browser.time.limit" and status.code == FAILED and words in status.args[0]:
        return None  # on a busy machine the time to take the page down may not suffice, either
    seen = code != RENDERED or (b"honest workwork" if honest else b"seen") in (page.content or b"")
    return None if status.code == (code or status.code) and seen and words in " ".join(status.args) else status


@pytest.mark.parametrize(
    ("paths", "honest", "seconds"), [(SHORT, SHORT[::3], 30), (list(EXPECTED), list(EXPECTED), 60)], ids=["some", "all"]
)
def test_hostile_pages_end_with_status_and_others_are_unaffected(
    site: ScriptedSite, render: Render, paths: list[str], honest: list[str], seconds: int
) -> None:
    """A page that a busy machine could not finish in time is retried with more time."""
    for path in ("/tick", "/frame", "/work"):
        site.on(path, Reply(body=b"{}"))
    site.on("/big", Reply(body=b"x" * 1_000_000, content_type="application/octet-stream"))
    site.on("/drip", Reply(pieces=itertools.repeat(b" "), pause=0.05, length=False))
    for path in paths:
        site.on(path, Reply(body=HOSTILE[path]))
    for path in honest:
        site.on(f"/honest{path}", Reply(body=HONEST))
    slow = [path for path in paths if EXPECTED[path][1] in CLOCKS]
    left = [*slow, *(f"/honest{path}" for path in honest if path in slow)]
    others = [each for path in paths if path not in slow for each in (path, *[f"/honest{path}"] * (path in honest))]
    for limit, urls in ((6, left), (seconds, others), (4 * seconds, []), (16 * seconds, [])):
        site.seen.clear()
        left = sorted({*left, *urls}, key=lambda path: (path.removeprefix("/honest"), path))
        if not left:
            continue
        render(
            *map(site.url, left),
            rules="url /honest/ render selector=#root:not(:empty)\nurl /memory render delay=60\n"
            "url /(asking-)?workers render selector=#root:not(:empty)\nall render",
            browser_time_limit=str(limit),
            browser_idle_limit=str(max(3, limit // 6)),
            browser_requests_limit="50",
            browser_bytes_limit="8000000",
            browser_memory_limit="512",
            fetcher_threads_per_queue="4",
        )
        asked = [seen.path for seen in site.seen]
        for path in ("/tick?", "/frame?", "/work?", "/shared?", "/socket?"):
            assert sum(each.startswith(path) for each in asked) <= 3 * 50  # again, if its browser was lost to another
        assert asked.count("/reload") <= 3 * 6
        assert not [path for path in asked if path.startswith("/away?")]
        wrong = {path: status for path in left if (status := wrong_of(path, render.pages[site.url(path)]))}
        in_time = {path: said for path, said in wrong.items() if not any(map(" ".join(said.args).count, CLOCKS))}
        assert in_time == {}
        left = list(wrong)
    assert left == []
    assert len(render.pages[site.url("/huge")].content or b"") == 1_048_576
    if "/asking" in paths:
        asking = render.pages[site.url("/asking")].content or b""
        assert (asking.count(b"denied "), asking.count(b"granted ")) == (7, 0)


HELD = b"""<div id=root></div><script>fetch('/shown'); const ask = async () => {
    const reply = await (await fetch('/go')).text();
    if (reply == 'go') root.textContent = 'honest ' + 'work'.repeat(2); else setTimeout(ask, 200); }; ask()</script>"""


@pytest.mark.parametrize("times", [1, 2])
def test_killed_browser_is_replaced(
    site: ScriptedSite,
    render: Render,
    homes: list[chromium.BrowserProfile],
    monkeypatch: pytest.MonkeyPatch,
    times: int,
) -> None:
    """The browser process dies during two pages: another browser renders them; after the second time, one each."""
    killed: set[int] = set()

    def memory(pid: int) -> int:
        """Kill the browser instead of reading the memory of a page's process."""
        for each in set(filter(None, map(chromium.find_browser_pid, homes[:times]))) - killed:
            if site.gets("/shown") >= 2 * (1 + len(killed)):  # it shows both
                killed.add(each)
                chromium.kill_process(each)
                site.on("/go", Reply(body=b"go" if len(killed) == times else b"stay"))
        return 0

    monkeypatch.setattr(chromium, "get_private_memory", memory)
    site.on("/shown", Reply(body=b"x"))
    site.on("/go", Reply(body=b"stay"))
    urls = [site.url("/1"), site.url("/2", "b.test")]
    for path in ("/1", "/2"):
        site.on(path, Reply(body=HELD))
    render(*urls, rules="all render selector=#root:not(:empty)")
    assert len(homes) == (2 if times == 1 else 4)
    assert len(killed) == times
    assert [b"honest workwork" in (render.pages[url].content or b"") for url in urls] == [True, True]
    assert render.report.counters["rendered"] == 2


def driver() -> list[int]:
    """Return the drivers started by this process."""
    below = list(chromium.iter_descendants(os.getpid()))
    return [pid for pid, command in commands() if pid in below and command[1:] and b"run-driver" in command]


def test_killed_driver_is_replaced(
    site: ScriptedSite, render: Render, homes: list[chromium.BrowserProfile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Playwright's driver dies with the browser during pages: new ones render them and the following pages."""
    killed = list[int]()

    def memory(pid: int) -> int:
        if not killed:
            killed.extend(driver())
            for each in killed:
                chromium.kill_process(each)
        return 0

    monkeypatch.setattr(chromium, "get_private_memory", memory)
    urls = []
    for number in range(4):
        site.on(f"/{number}", Reply(body=HONEST))
        urls.append(site.url(f"/{number}"))
    render(*urls, rules="all render selector=#root:not(:empty)")
    assert len(killed) == 1
    assert len(homes) == 2
    assert [b"honest workwork" in (render.pages[url].content or b"") for url in urls] == [True] * 4
    assert driver() == []
    assert not any(home.path.exists() for home in homes)


def hung_browsers(homes: list[chromium.BrowserProfile]) -> list[int]:
    return [pid for home in homes if (pid := chromium.find_browser_pid(home)) is not None]


@pytest.mark.parametrize("kind", ["driver", "browser"])
def test_hanging_browser_is_replaced(
    site: ScriptedSite, render: Render, homes: list[chromium.BrowserProfile], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A hanging browser reports nothing: the page times out, the ping fails, and another browser takes over."""
    monkeypatch.setattr(browser_process, "PING_TIMEOUT", 10.0)
    stopped: list[int] = []

    def memory(pid: int) -> int:
        if not stopped and site.gets("/shown"):
            stopped.extend(driver() if kind == "driver" else hung_browsers(homes))
            for each in stopped:
                os.kill(each, signal.SIGSTOP)
            site.on("/go", Reply(body=b"go"))
        return 0

    monkeypatch.setattr(chromium, "get_private_memory", memory)
    urls = []
    site.on("/shown", Reply(body=b"x"))
    site.on("/go", Reply(body=b"stay"))
    for number in range(4):
        site.on(f"/{number}", Reply(body=HELD))
        urls.append(site.url(f"/{number}"))
    try:
        render(*urls, rules="all render selector=#root:not(:empty)", browser_time_limit="30")
    finally:
        left = list(filter(alive, stopped))
        for each in left:
            chromium.kill_process(each)
    assert (len(stopped), left) == (1, [])
    assert len(homes) >= 2
    assert [b"honest workwork" in (render.pages[url].content or b"") for url in urls] == [True] * 4
    assert driver() == []
    assert not any(home.path.exists() for home in homes)


@pytest.mark.parametrize("alone", [False, True])
def test_page_blocking_driver_does_not_affect_others(
    site: ScriptedSite,
    render: Render,
    homes: list[chromium.BrowserProfile],
    monkeypatch: pytest.MonkeyPatch,
    alone: bool,
) -> None:
    """No snapshot is possible, perhaps because of the page next to it, so it gets a browser of its own."""
    take, give_up = tab_renderer.TabRenderer.take_snapshot, browser_process.BrowserProcess.give_up

    async def snapshot(showing: tab_renderer.TabRenderer) -> PageSnapshot:
        if showing.url.endswith("/stuck") and (alone or len(homes) == 1):
            await asyncio.Event().wait()
        return await take(showing)

    def given_up(browser: browser_process.BrowserProcess) -> None:
        site.on("/go", Reply(body=b"go"))
        give_up(browser)

    monkeypatch.setattr(tab_renderer.TabRenderer, "take_snapshot", snapshot)
    monkeypatch.setattr(browser_process.BrowserProcess, "give_up", given_up)
    monkeypatch.setattr(tab_renderer, "GRACE_SECONDS", 1.0)
    site.on("/shown", Reply(body=b"x"))
    site.on("/go", Reply(body=b"stay"))
    site.on("/stuck", Reply(body=b"<p>seen</p>"))
    site.on("/honest", Reply(body=HELD))
    urls = [site.url("/stuck"), site.url("/honest", "b.test")]
    render(*urls, rules="url /stuck render load\nall render selector=#root:not(:empty)", browser_time_limit="30")
    assert b"honest workwork" in (render.pages[urls[1]].content or b"")
    status = render.pages[urls[0]].protocol_status
    assert status is not None
    assert (status.code, "browser.time.limit" in status.args[0]) == ((FAILED, True) if alone else (RENDERED, False))
    assert len(homes) == 3


COOKIE = b"<p id=at><script>at.append('made ' + (document.cookie || 'new')); document.cookie = 'a=b'</script>"


def test_browsers_and_contexts_are_recycled(
    site: ScriptedSite, render: Render, homes: list[chromium.BrowserProfile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        browser_pool, "CLOSE_TIMEOUT", 60.0
    )  # a tab that closes late is replaced, which is not counted here
    monkeypatch.setattr(tab_renderer, "GRACE_SECONDS", 60.0)
    urls = []
    for number in range(6):
        site.on(f"/{number}", Reply(body=COOKIE))
        urls.append(site.url(f"/{number}"))
    render(*urls, rules="all render load", browser_tabs="1", browser_context_pages="2", browser_restart_pages="3")
    assert [b"made new" in (render.pages[url].content or b"") for url in urls] == [True] * 6
    assert len(homes) == 2
    assert not any(home.path.exists() for home in homes)


TASK = """
import sys
from nutch2py.browser.renderer_factory import open_renderer
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.url.keys import reverse_url
from nutch2py.records.webpage import WebPage
url = sys.argv[1]
conf = Configuration.load(overrides={
    "http.agent.name": "probe", "http.filter.ipaddress.exclude": "", "plugin.includes.add": "protocol-browser",
    "browser.rules": "all render delay=600", "browser.time.limit": "600",
})
item = FetchItem(reverse_url(url), url, WebPage())
Fetcher(conf, 1, open_renderer=open_renderer(conf)).run(iter([item]), lambda item: None)
"""


def of_browser(folder: Path) -> list[int]:
    mark = str(folder).encode()
    return [pid for pid, command in commands() if any(mark in word for word in command) and b"-c" not in command]


def test_killed_task_leaves_no_browser_process(site: ScriptedSite, render: Render, tmp_path: Path) -> None:
    site.on("/", Reply(body=b"<p>x<script>fetch('/shown')</script>"))
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"killed-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        task = subprocess.Popen([sys.executable, "-c", TASK, site.url("/")], env={**os.environ, "TMPDIR": str(folder)})
        try:
            wait_until(lambda: site.gets("/shown") or task.poll() is not None)
            assert task.poll() is None
            processes = of_browser(folder)
            assert len(processes) >= 3
        finally:
            task.kill()
            task.wait()
        wait_until(lambda: not any(map(alive, processes)))
        assert not of_browser(folder)
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
