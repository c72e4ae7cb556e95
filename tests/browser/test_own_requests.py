"""Requests of pages: limited by robots.txt, with the cookies of their site, and only the required types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nutch2py.browser.browser_process import BrowserTab
from tests.browser.conftest import Render
from tests.site.server import Reply, ScriptedSite

ROBOTS = Reply(body=b"User-agent: *\nDisallow: /private/\nDisallow: /*.deny$\n", content_type="text/plain")
ASKS = """<body><div id=root></div><script src=/private/script.js></script><script src=/open.js></script>
<iframe src=/private/frame></iframe><link rel=stylesheet href=/style.deny>
<script>
const ask = (url) => fetch(url, {mode: "no-cors"}).then((answer) => url + " came", () => url + " failed");
Promise.all(["/private/data", "/public/data", "OTHER/private/data", "OTHER/public/data"].map(ask))
  .then((said) => { root.textContent = said.join(", ") + ", script " + (window.open_script || "none"); });
</script>"""


@pytest.mark.parametrize("obey", [True, False])
def test_robots_txt_applies_to_subrequests(site: ScriptedSite, render: Render, obey: bool) -> None:
    with ScriptedSite() as other:
        for each in (site, other):
            each.on("/robots.txt", ROBOTS)
            for path in ("/private/data", "/public/data", "/private/script.js", "/private/frame", "/style.deny"):
                each.on(path, Reply(body=b"x"))
        site.on("/open.js", Reply(body=b"window.open_script = 'ran'", content_type="text/javascript"))
        site.on("/", Reply(body=ASKS.replace("OTHER", other.url("", "b.test").rstrip("/")).encode()))
        page = render(
            site.url("/", "a.test"), rules="all render selector=#root:not(:empty)", browser_robots=str(obey).lower()
        )
        text = (page.content or b"").decode()
        assert text.count("/public/data came") == 2
        assert "script ran" in text
        assert text.count("/private/data failed") == (2 if obey else 0)
        denied = [seen.path for each in (site, other) for seen in each.seen if "private" in seen.path]
        denied += [seen.path for seen in site.seen if seen.path.endswith(".deny")]
        assert len(denied) == (0 if obey else 5)
        assert other.gets("/robots.txt") == obey
        assert render.report.counters["render_robots_denied"] == (5 if obey else 0)


def test_robots_txt_is_not_requested_without_subrequests(site: ScriptedSite, render: Render, tmp_path: Path) -> None:
    hosts = tmp_path / "blocked.txt"
    hosts.write_text("b.test\n", encoding="utf-8")
    with ScriptedSite() as other:
        script = f"fetch('{other.url('/x', 'sub.b.test')}').then(() => 'came', () => 'failed')"
        write = ".then((text) => { root.textContent = text; })"
        site.on("/", Reply(body=f"<div id=root></div><script>{script}{write}</script>".encode()))
        page = render(
            site.url("/", "a.test"),
            rules="all render selector=#root:not(:empty)",
            browser_blocked_hosts_file=str(hosts),
        )
        assert b">failed<" in (page.content or b"")
        assert other.seen == []


def test_response_cookies_are_visible_only_to_own_scripts(site: ScriptedSite, render: Render) -> None:
    """The row contains the headers of the fetch; cookies set by scripts stay with the page."""
    script = b"""<div id=root></div><script>const before = [localStorage.last, sessionStorage.last, name].join('');
        document.cookie = 'own=2'; localStorage.last = sessionStorage.last = name = 'x';
        fetch('/data').then(() => { root.textContent = 'before: ' + before + '.'; })</script>"""
    site.on("/first", Reply(body=script, headers=[("Set-Cookie", "session=1; HttpOnly")]))
    site.on("/second", Reply(body=script))
    site.on("/data", Reply(body=b"x", headers=[("Set-Cookie", "late=3")]))
    urls = [site.url("/first"), site.url("/second")]
    render(*urls, rules="all render selector=#root:not(:empty)", browser_tabs="1", fetcher_threads_per_queue="1")
    sent = [seen.headers.get("cookie", "") for seen in site.seen if seen.path == "/data"]
    assert [sorted(each.split("; ")) for each in sent] == [["own=2", "session=1"], ["own=2"]]
    found = [b"before: ." in (render.pages[url].content or b"") for url in urls]
    assert found == [True, True], [(page.protocol_status, page.content) for page in render.pages.values()]
    assert render.pages[urls[0]].headers["Set-Cookie"] == "session=1; HttpOnly"
    assert "Set-Cookie" not in render.pages[urls[1]].headers
    assert [seen.headers.get("cookie") for seen in site.seen if seen.path in ("/first", "/second")] == [None, None]


LEFT = b"""<div id=root></div><script>const left = () => navigator.sendBeacon('/left');
    history.pushState({}, '', '/on'); addEventListener('pagehide', left); addEventListener('unload', left);
    addEventListener('beforeunload', (event) => { left(); event.preventDefault(); event.returnValue = 'stay'; });
    setInterval(() => { sessionStorage.last = name = 'x'; }, 1);
    setTimeout(() => { root.textContent = 'done'; }, 300)</script>"""
NEXT = b"""<div id=root></div><script>const was = [history.length, sessionStorage.last, name, document.referrer].join();
    history.back(); setTimeout(() => { root.textContent = `was ${was}.`; }, 300)</script>"""

AGAIN = b"""<div id=root></div><script>if (sessionStorage.last) root.textContent = 'again';
    else { sessionStorage.last = 'x'; location.reload(); }</script>"""
NEW_LOCATION = AGAIN.replace(b"location.reload()", b"location.href = location.href")


def test_tab_state_is_reset_between_pages(site: ScriptedSite, render: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary pages are rendered successively in the same tab without noticing each other."""
    kept: list[bool] = []
    give = BrowserTab.open_page

    async def noted(tab: BrowserTab) -> Any:
        kept.append(tab.blank_page is not None)
        return await give(tab)

    monkeypatch.setattr(BrowserTab, "open_page", noted)
    site.on("/left", Reply(body=b"x"))
    paths = {"/1": LEFT, "/2": NEXT, "/3": LEFT, "/4": NEXT, "/5": AGAIN, "/6": NEW_LOCATION}
    for path, body in paths.items():
        site.on(path, Reply(body=body))
    urls = [site.url("/1"), site.url("/2"), site.url("/3", "b.test"), site.url("/4")]
    urls += [site.url("/5"), site.url("/6")]
    one = {"browser_tabs": "1", "fetcher_threads_per_queue": "1"}
    render(*urls, rules="all render selector=#root:not(:empty)", **one)
    assert [b"done" in (render.pages[url].content or b"") for url in (urls[0], urls[2])] == [True, True]
    seen = [(render.pages[url].content or b"").partition(b">was ")[2].partition(b".<")[0] for url in (urls[1], urls[3])]
    assert seen == [b"1,,,"] * 2
    assert [b">again<" in (render.pages[url].content or b"") for url in urls[4:]] == [True, True]
    assert kept == [False, True, True, True, True, True]
    assert not site.gets("/left")


WRITE = b".then((answer) => answer.text()).then((text) => { root.textContent = text; })"
LOADS = b"""<style>@font-face { font-family: f; src: url(/font.woff2); }
#root { font-family: f; background: url(/b.png) }
</style><link rel=stylesheet href=/style.css><div id=root>text</div><img src=/i.png><picture>
<source srcset=/s.webp><img></picture><video src=/v.mp4 autoplay></video><audio src=/a.mp3 autoplay></audio>
<input type=image src=/n.png><link rel=icon href=/icon.png>
<script>new Image().src = '/new.png'; new FontFace('g', 'url(/face.woff2)').load().catch(() => {});</script>"""


@pytest.mark.parametrize("loaded", [False, True])
def test_media_is_loaded_only_when_configured(site: ScriptedSite, render: Render, loaded: bool) -> None:
    site.on("/", Reply(body=LOADS))
    site.on("/style.css", Reply(body=b"p { color: red }", content_type="text/css"))
    wanted = {f"browser_load_{what}": str(loaded).lower() for what in ("images", "fonts", "media")}
    render(site.url("/"), rules="all render", browser_load_stylesheets=str(not loaded).lower(), **wanted)
    asked = {seen.path for seen in site.seen} - {"/", "/robots.txt"}
    media = {"/b.png", "/i.png", "/s.webp", "/v.mp4", "/a.mp3", "/new.png", "/font.woff2", "/face.woff2"}
    assert asked >= media if loaded else asked == {"/style.css"}
    assert ("/style.css" in asked) != loaded


def test_subrequests_use_fetcher_proxy(site: ScriptedSite, render: Render) -> None:
    """The site acts as the proxy: it receives absolute URLs of a non-existent host, with the proxy's login."""
    site.on("http://far.example/robots.txt", Reply(404))
    script = b"<div id=root></div><script>fetch('/data')" + WRITE + b"</script>"
    site.on("http://far.example/", Reply(body=script))
    site.on("http://far.example/data", Reply(body=b"by the proxy"))
    page = render(
        "http://far.example/",
        rules="all render selector=#root:not(:empty)",
        http_proxy_host="127.0.0.1",
        http_proxy_port=str(site.port),
        http_proxy_username="ann",
        http_proxy_password="secret",
    )
    assert b"by the proxy" in (page.content or b"")
    (seen,) = (seen for seen in site.seen if seen.path.endswith("/data"))
    assert seen.headers["proxy-authorization"] == "Basic YW5uOnNlY3JldA=="


def test_browser_time_does_not_count_as_slow_server(site: ScriptedSite, render: Render) -> None:
    """Pages of a host are skipped once its server was slow for too long; rendering time does not count."""
    urls = [site.url(f"/{number}") for number in range(4)]
    for number in range(4):
        site.on(f"/{number}", Reply(body=b"<p>x"))
    slow = {"fetcher_threads_slow_after": "0.5", "fetcher_max_trouble_per_queue": "3", "fetcher_threads_per_queue": "1"}
    render(*urls, rules="all render delay=1.5", **slow)
    assert render.report.counters["rendered"] == 4


LOGIN = b"""<div id=root></div><iframe src=/401></iframe><script>
const code = "onmessage = async ({data}) => postMessage((await fetch(data)).status)";
const worker = new Worker(URL.createObjectURL(new Blob([code])));
const reply = new Promise((done) => { worker.onmessage = (event) => done(event.data); });
worker.postMessage(location.origin + '/401');
const of = (path) => fetch(path).then(async (answer) => answer.status + await answer.text(), String);
Promise.all([reply, ...['/401', '/407', '/hint', '/hidden'].map(of)]).then((all) => { root.textContent = all.join(); });
</script>"""
FIRST = b"HTTP/1.1 103 Early Hints\r\nLink: </hinted>; rel=preload; as=style\r\n\r\n"


@pytest.mark.parametrize("obey", ["true", "false"])
def test_login_response_is_kept(site: ScriptedSite, render: Render, obey: str) -> None:
    """No login dialog blocks the page, and a 407 of the server does not make the browser forget its login."""
    site.on("/", Reply(body=LOGIN))
    site.on("/next", Reply(body=b"<div id=root></div><script>fetch('/data')" + WRITE + b"</script>"))
    site.on("/data", Reply(body=b"data"))
    site.on("/401", Reply(401, body=b"no", headers=[("WWW-Authenticate", 'Basic realm="x"')]))
    asks = b'HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm="nutch2py"\r\nContent-Length: 2\r\n\r\nno'
    site.on("/407", Reply(raw=asks))
    site.on("/hint", Reply(raw=FIRST + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"))
    site.on("/hidden", Reply(raw=FIRST + asks))
    urls = [site.url("/"), site.url("/next")]
    one = {"browser_tabs": "1", "fetcher_threads_per_queue": "1"}
    render(*urls, rules="all render selector=#root:not(:empty)", browser_robots=obey, **one)
    assert b">401,401no,502no,200yes,502no<" in (render.pages[urls[0]].content or b"")
    assert b">data<" in (render.pages[urls[1]].content or b"")
