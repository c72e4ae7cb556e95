"""Rendering of pages in a real browser, and of pages that need none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.jobs.tools.page_checkers import run_parse_checker
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, MetadataKey
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.browser.conftest import Render
from tests.site.certificate import self_signed
from tests.site.server import Reply, ScriptedSite

SHELL = b"""<!doctype html><html><head><meta charset=gbk><title>x</title></head><body><noscript>You need to enable
JavaScript</noscript><div id=root></div><script src=/app.js></script></body></html>"""
APP = """
fetch("/data.json").then((answer) => answer.json()).then((data) => {
  document.title = data.title;
  history.pushState({}, "", "/shown/here");
  document.getElementById("root").innerHTML = `<h1>${data.text}</h1><a href="next">next</a><img src=/i.png>`;
});
"""


def script_site(site: ScriptedSite) -> None:
    site.on("/", Reply(body=SHELL, headers=[("X-Of", "the shell"), ("Content-Length", str(len(SHELL)))]))
    site.on("/app.js", Reply(body=APP.encode(), content_type="text/javascript"))
    site.on("/data.json", Reply(body='{"title": "Fräulein", "text": "made by a script 中"}'.encode()))


def test_app_shell_is_rendered(site: ScriptedSite, render: Render) -> None:
    script_site(site)
    page = render(site.url("/"))
    assert page.status == CrawlStatus.FETCHED
    assert page.protocol_status == ProtocolStatus(Code.SUCCESS, ("rendered",))
    text = (page.content or b"").decode("utf-8-sig")
    assert "<h1>made by a script 中</h1>" in text
    assert "<title>Fräulein</title>" in text
    assert "<noscript" not in text
    assert text.startswith("<!DOCTYPE html><html>")
    assert page.base_url == site.url("/shown/here")
    assert page.headers["X-Of"] == "the shell"
    assert page.headers["Content-Length"] == str(len(page.content or b""))
    assert render.report.counters["rendered"] == render.report.counters["rendered_shells"] == 1
    assert [seen.path for seen in site.seen].count("/") == 1  # the browser is given what the fetcher has
    assert not site.gets("/i.png")
    assert not site.gets("/favicon.ico")


def test_page_with_text_is_not_rendered(site: ScriptedSite, render: Render) -> None:
    body = b"<title>t</title><body><p>" + b"words enough " * 40 + b"<script src=/app.js></script>"
    site.on("/", Reply(body=body))
    page = render(site.url("/"))
    assert page.content == body
    assert page.protocol_status == ProtocolStatus(Code.SUCCESS)
    assert not site.gets("/app.js")
    assert not render.report.counters["rendered"]


def test_parsechecker_shows_rendered_additions(
    site: ScriptedSite, browser_conf: Configuration, render: Render, capsys: pytest.CaptureFixture[str]
) -> None:
    script_site(site)
    assert run_parse_checker(browser_conf, site.url("/"), dump_text=True, render=True) == 0
    said = capsys.readouterr().out
    assert "rule: auto idle\nsigns: text 0, links 0, scripts 1, inline 0, root yes, notice yes" in said
    assert ": an empty shell\nbrowser: rendered\n" in said
    assert re.search(r"^title +x +Fräulein$", said, re.MULTILINE)
    assert f"+ {site.url('/shown/next')} next\n" in said
    assert "made by a script 中" in said


def test_shadow_dom_text_is_extracted(site: ScriptedSite, render: Render) -> None:
    body = b"""<body><x-card>light</x-card><script>customElements.define("x-card", class extends HTMLElement {
        constructor() { super(); this.attachShadow({mode: "open"}).innerHTML = "<a href=/in>from the shadow</a>"; }});
        </script>"""
    site.on("/", Reply(body=body))
    assert b'<x-card><a href="/in">from the shadow</a>light</x-card>' in (render(site.url("/")).content or b"")


def test_scrolling_loads_more_content(site: ScriptedSite, render: Render) -> None:
    body = b"""<body><div id=list></div><div id=end style="height:10px">...</div><script>
        let page = 0;
        const observer = new IntersectionObserver(async (seen) => {
          if (!seen[0].isIntersecting || page >= 5) return;
          list.insertAdjacentHTML("beforeend", await (await fetch("/more?" + page++)).text());
          observer.unobserve(end);
          observer.observe(end);
        });
        observer.observe(end);
        </script>"""
    site.on("/", Reply(body=body))
    for number in range(5):
        row = f'<p style="height:3000px">piece {number} <a href="/piece/{number}">on</a>'
        site.on(f"/more?{number}", Reply(body=row.encode()))
    page = render(site.url("/"), rules="all render idle scroll=20")
    assert [number for number in range(5) if f"/piece/{number}".encode() in (page.content or b"")] == [0, 1, 2, 3, 4]
    assert not site.gets("/more?5")


def test_screenshot_is_stored_when_configured(site: ScriptedSite, render: Render) -> None:
    script_site(site)
    page = render(site.url("/"), browser_screenshot="view", browser_load_images="true")
    assert page.metadata[MetadataKey.SCREENSHOT].startswith(b"\xff\xd8")
    assert site.gets("/i.png")


def test_script_navigation_becomes_redirect(site: ScriptedSite, render: Render) -> None:
    site.on("/", Reply(body=b"<script>location.replace('/there')</script>"))
    page = render(site.url("/"))
    assert page.protocol_status == ProtocolStatus(Code.TEMP_MOVED, (site.url("/there"),))
    assert page.status == CrawlStatus.REDIR_TEMP
    assert dict(page.outlinks) == {site.url("/there"): ""}
    assert not site.gets("/there")


def test_warc_contains_original_response(site: ScriptedSite, render: Render, tmp_path: Path) -> None:
    script_site(site)
    render(site.url("/"), fetcher_warc_dir=str(tmp_path))
    (file,) = tmp_path.glob("*.warc.gz")
    with file.open("rb") as stream:
        bodies = [each.content_stream().read() for each in ArchiveIterator(stream) if each.rec_type == "response"]
    assert bodies == [SHELL]


def test_fetch_without_browser_fails_with_reason(site: ScriptedSite, render: Render, tmp_path: Path) -> None:
    site.on("/", Reply(body=SHELL))
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\necho 'FATAL: no sandbox' >&2\nexit 1\n", encoding="utf-8")
    false.chmod(0o755)
    with pytest.raises(ConfigurationError, match=r"the browser does not start: .*no sandbox"):
        render(site.url("/"), browser_executable=str(false), browser_sandbox="false")
    with pytest.raises(ConfigurationError, match=r"browser\.executable: /none is not an executable program"):
        render(site.url("/"), browser_executable="/none")
    assert not render.pages


@pytest.mark.parametrize("check", [False, True])
def test_subrequest_tls_certificate_is_checked(site: ScriptedSite, render: Render, tmp_path: Path, check: bool) -> None:
    with ScriptedSite(certificate=self_signed(tmp_path, "b.test")) as other:
        other.on("/data", Reply(body=b"of the other host", headers=[("Access-Control-Allow-Origin", "*")]))
        script = f"fetch('{other.url('/data', 'b.test')}').then((answer) => answer.text(), () => 'failed')"
        write = ".then((text) => { document.body.textContent = text; });"
        site.on("/", Reply(body=f"<body><div id=root></div><script>{script}{write}</script>".encode()))
        page = render(site.url("/", "a.test"), rules="all render", http_tls_certificates_check=str(check).lower())
        assert (b"failed" if check else b"of the other host") in (page.content or b"")
        assert other.gets("/data") == (not check)
