"""Limits of a page in a real Chromium: lengths of URLs, memory of all its processes, reach of the first script."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.browser import chromium
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.browser.conftest import Render
from tests.site.server import Reply, ScriptedSite

LONG = "'/' + 'x'.repeat(2e6)"
RULES = "all render selector=#root:not(:empty)"
SAY = "root.textContent = 'shown';"
BODY = "<div id=root></div><script>%s</script>"
PAGES = {
    "pushState": f"history.pushState({{}}, '', {LONG}); {SAY}",
    "replaceState": f"history.replaceState({{}}, '', {LONG}); {SAY}",
    "hash": f"location.hash = 'x'.repeat(1e6); {SAY}",
    "open": f"window.open({LONG}); {SAY}",
    "frame": f"const f = document.createElement('iframe'); f.src = {LONG}; document.body.append(f); {SAY}",
    "image": f"const i = new Image(); i.src = {LONG}; document.body.append(i); {SAY}",
    "leave": f"{SAY} const f = document.createElement('form'); f.action = {LONG}; f.method = 'post'; "
    "document.body.append(f); f.submit();",
    "base": f"const b = document.createElement('base'); b.href = {LONG} + '/'; document.head.append(b); {SAY}",
}
MORE_PAGES = {
    "frame location": f"const f = document.createElement('iframe'); document.body.append(f); "
    f"f.contentWindow.location = {LONG}; {SAY}",
    "stylesheet": f"const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = {LONG}; "
    f"document.body.append(l); {SAY}",
    "preload": f"const l = document.createElement('link'); l.rel = 'preload'; l.as = 'image'; l.href = {LONG}; "
    f"document.body.append(l); {SAY}",
    "fetch": f"fetch({LONG}).catch(() => 0); {SAY}",
}
LEAVING = {
    "location": f"location = {LONG};",
    "assign": f"location.assign({LONG});",
    "replace": f"location.replace({LONG});",
    "refresh": f"const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url=' + {LONG}; "
    "document.head.append(m);",
    "form": f"const f = document.createElement('form'); f.action = {LONG}; document.body.append(f); f.submit();",
    "post": f"const f = document.createElement('form'); f.action = {LONG}; f.method = 'post'; "
    "document.body.append(f); f.submit();",
    "click": f"const a = document.createElement('a'); a.href = {LONG}; document.body.append(a); a.click();",
    "open in itself": f"window.open({LONG}, '_self');",
    "short post": "const f = document.createElement('form'); f.action = '/elsewhere'; f.method = 'post'; "
    "document.body.append(f); f.submit();",
}
"""Pages that leave themselves for an overlong URL, or by a request other than GET."""


@pytest.mark.parametrize("rules", ["delay=0.1", "load", "idle"])
def test_page_that_leaves_for_overlong_url_keeps_its_own(site: ScriptedSite, render: Render, rules: str) -> None:
    """And is finished as any other page, although it has tried to leave."""
    paths = {name: f"/{name.replace(' ', '-')}" for name in LEAVING}
    for name, script in LEAVING.items():
        site.on(paths[name], Reply(body=(BODY % script).encode()))
    render(*(site.url(path) for path in paths.values()), rules=f"all render {rules}")
    for name, path in paths.items():
        page = render.pages[site.url(path)]
        status = page.protocol_status
        assert status is not None
        assert (name, status.code, status.args) == (name, Code.SUCCESS, ("rendered",))
        stored = [page.base_url or "", page.repr_url or "", *status.args, *page.outlinks]
        assert (name, max(map(len, stored)) <= 8192) == (name, True)
    assert max(len(seen.path) for seen in site.seen) <= 8192


@pytest.mark.parametrize("pages", [PAGES, MORE_PAGES], ids=["usual", "more"])
def test_no_url_of_page_is_stored_beyond_limit(site: ScriptedSite, render: Render, pages: dict[str, str]) -> None:
    paths = {name: f"/{name.replace(' ', '-')}" for name in pages}
    for name, script in pages.items():
        site.on(paths[name], Reply(body=(BODY % script).encode()))
    render(*(site.url(path) for path in paths.values()), rules=RULES)
    for name, path in paths.items():
        page = render.pages[site.url(path)]
        status = page.protocol_status
        assert status is not None
        assert (name, status.code, b"shown" in (page.content or b"")) == (name, Code.SUCCESS, name != "base")
        assert name != "leave" or status.args == ("rendered",)
        stored = [page.base_url or "", page.repr_url or "", *status.args, *page.outlinks]
        assert (name, max(map(len, stored)) <= 8192) == (name, True)
    assert max(len(seen.path) for seen in site.seen) <= 8192


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_overlong_http_redirect_is_not_stored(site: ScriptedSite, render: Render, status: int) -> None:
    site.on("/moved", Reply(status, headers=[("Location", "/" + "x" * 20_000)]))
    page = render(site.url("/moved"))
    assert page.protocol_status is not None
    assert page.protocol_status.code == Code.EXCEPTION
    assert "8192" in page.protocol_status.args[0]
    assert page.outlinks == {}


def test_frames_of_many_sites_have_memory_limit_together(
    site: ScriptedSite, render: Render, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each frame fills 120 MB in a process of its own, the limit is 256."""
    sums: dict[int, int] = {}
    totals: list[int] = [0]
    measure, list_all = chromium.get_private_memory, chromium.iter_descendants

    def measured(pid: int) -> int:
        memory = measure(pid)
        sums[pid] = memory if chromium.is_renderer_process(pid) else 0
        return memory

    def listed(pid: int) -> list[int]:
        totals.append(sum(sums.values()))
        sums.clear()
        return [*list_all(pid)]

    monkeypatch.setattr(chromium, "get_private_memory", measured)
    monkeypatch.setattr(chromium, "iter_descendants", listed)
    hold = "const all = []; for (let n = 0; n < 15; n++) all.push(new Uint8Array(8 << 20).fill(1));"
    site.on("/frame", Reply(body=f"<script>{hold} parent.postMessage(1, '*')</script>".encode()))
    frames = "".join(f"<iframe src='http://site{number}.test:{site.port}/frame'></iframe>" for number in range(8))
    wait = "setTimeout(() => { root.textContent = 'shown'; }, 12000)"
    site.on("/", Reply(body=f"<div id=root></div>{frames}<script>{wait}</script>".encode()))
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1 site{number}.test\n" for number in range(8)), encoding="utf-8")
    page = render(site.url("/"), rules=RULES, browser_memory_limit="256", http_hosts_file=str(hosts))
    assert len([seen for seen in site.seen if seen.path == "/frame"]) == 8
    assert totals[-1] <= 256 << 20
    assert page.protocol_status is not None


@pytest.mark.parametrize("sandbox", ["sandbox=allow-scripts", "sandbox='allow-scripts allow-popups'", ""])
def test_first_script_reaches_frames(site: ScriptedSite, render: Render, sandbox: str) -> None:
    report = "<script>parent.postMessage(typeof RTCPeerConnection, '*')</script>"
    site.on("/frame", Reply(body=report.encode()))
    listen = (
        "const said = []; addEventListener('message', (event) => { said.push(event.data);"
        " if (said.length == 2) root.textContent = said.join(' ') + ' '; })"
    )
    frames = f'<iframe {sandbox} src=/frame></iframe><iframe {sandbox} srcdoc="{report}"></iframe>'
    site.on("/", Reply(body=f"<div id=root></div><script>{listen}</script>{frames}".encode()))
    page = render(site.url("/"), rules=RULES)
    content = page.content or b""
    assert b">undefined undefined " in content
