"""Pages that scripts make, in a real browser: what comes of them, and what of those that need none."""

from __future__ import annotations

from nutch2py.cells import ProtocolStatus
from nutch2py.webpage import CrawlStatus
from nutch2py.webpage import ProtocolStatusCode as Code
from tests.browser.conftest import Render
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


def test_a_shell_becomes_what_its_scripts_make_of_it(site: ScriptedSite, render: Render) -> None:
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


def test_a_page_with_text_is_left_as_it_is(site: ScriptedSite, render: Render) -> None:
    body = b"<title>t</title><body><p>" + b"words enough " * 40 + b"<script src=/app.js></script>"
    site.on("/", Reply(body=body))
    page = render(site.url("/"))
    assert page.content == body
    assert page.protocol_status == ProtocolStatus(Code.SUCCESS)
    assert not site.gets("/app.js")
    assert not render.report.counters["rendered"]
