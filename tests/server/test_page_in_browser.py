"""The search page in a browser: every state in two sizes, light and dark, with and without scripts."""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.url.keys import reverse_url
from tests.charts.chrome import VIEWS, axe, chrome, faults, open_page, save, too_wide
from tests.indexer.pages import doc
from tests.server.conftest import running

__all__ = ["axe", "chrome"]
KEY = quote(reverse_url("http://b.org/plain"))
STATES = {
    "home": "",
    "results": "?q=needle",
    "narrowed": "?q=needle&host=a.org",
    "many": "?q=hay&start=10",
    "none": "?q=nedle",
    "wrong": '?q=needle OR "',
    "cached": f"cached?id={KEY}&q=needle",
    "why": f"explain?id={KEY}&q=needle",
    "not-there": "nothing",
}


@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_every_page_state_is_readable(chrome, axe, server, size, scheme):
    with open_page(chrome, size, scheme) as page:
        for name, path in STATES.items():
            page.goto(server.url + path)
            if name == "why":
                page.click("summary")
            save(page, f"search-{name}-{size}-{scheme}", os.environ.get("NUTCH2PY_SCREENSHOTS"))
            assert faults(page, axe) == [], name
            assert too_wide(page) == 0, name
        assert [each for each in page.console_lines if "404" not in each] == []
        assert {url for url in page.requested_urls if not url.startswith(server.url)} == set()


def test_suggestions_are_selected_by_keyboard(chrome, axe, server):
    with open_page(chrome) as page:
        page.goto(f"{server.url}?q=hay")
        page.keyboard.press("/")
        page.keyboard.type("nee")
        page.wait_for_selector("#suggestions li")
        page.wait_for_selector("ol.hits em:text('needle')")  # while typing
        assert faults(page, axe) == []
        page.keyboard.press("ArrowDown")
        assert page.input_value("input[name=q]") == "needle"
        assert page.get_attribute("input[name=q]", "aria-activedescendant") == "suggestions-0"
        page.keyboard.press("Escape")
        assert not page.is_visible("#suggestions")
        assert page.input_value("input[name=q]") == "nee"
        page.keyboard.press("ArrowDown")
        page.wait_for_selector("#suggestions li")
        page.keyboard.press("ArrowDown")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url == f"{server.url}?q=needle"
        assert page.console_lines == []


def test_typed_query_is_in_history(chrome, server):
    with open_page(chrome) as page:
        page.goto(f"{server.url}?q=hay")
        page.fill("input[name=q]", "needle")
        page.wait_for_url(f"{server.url}?q=needle")
        page.go_back()
        page.wait_for_selector(".count:has-text('30 documents')")
        assert page.input_value("input[name=q]") == "hay"
        page.go_forward()
        page.wait_for_selector(".count:has-text('4 documents')")


def test_page_without_scripts_is_form_with_links(chrome, server):
    with open_page(chrome, scripts=False) as page:
        page.goto(server.url)
        page.fill("input[name=q]", "hay")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{server.url}?q=hay")
        page.click("text=Next")
        assert "11–20" in page.inner_text(".count")


@pytest.fixture
def elsewhere():
    """Yield the URL of another site that embeds the box, and a holder for its HTML."""
    shown = {"html": ""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(shown["html"].encode() if self.path == "/" else b"")

        def log_message(self, *_):
            """Log nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}", shown
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_search_box_is_embedded_by_one_tag(chrome, axe, server, elsewhere):
    there, shown = elsewhere
    server.conf.set("search.cors.origins", there)
    with running(server.conf) as made, open_page(chrome) as page:
        shown["html"] = (
            '<!doctype html><html lang="en"><title>Ours</title><link rel="icon" href="data:,"><style>input { display: '
            f'none }}</style><main><h1>Ours</h1><script src="{made.url}box.js" data-label="Find"></script></main>'
        )
        page.goto(there)
        page.fill("nutch2py-search input", "nee")
        page.wait_for_selector("nutch2py-search li")
        assert faults(page, axe) == []
        page.keyboard.press("ArrowDown")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url == f"{made.url}?q=needle"
        assert page.console_lines == []


@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_long_or_rotated_titles_keep_layout(chrome, axe, server, size, scheme):
    odd = {
        "long": "needle in " + "very " * 80 + "long title", "wide": "needle" + "W" * 300, "\u05d0": "אתר needle בעברית",
        "turned": "needle \u202egnp.exe \u2067x",
    }  # fmt: skip
    writer = EmbeddedIndexWriter(server.conf)
    writer.open(server.conf, {})
    for number, title in enumerate(odd.values()):
        url = f"http://odd.org/{number}/" + "a" * 500
        writer.write(doc(f"org.odd:http/{number}", url=url, host="odd.org", title=title, content=title * 5, lang="he"))
    writer.close()
    with running(server.conf) as made, open_page(chrome, size, scheme) as page:
        page.goto(f"{made.url}?q=host:odd.org")
        assert page.locator("ol.hits > li").count() == len(odd)
        assert (too_wide(page), faults(page, axe)) == (0, [])
        lines = "element => element.getBoundingClientRect().height / parseFloat(getComputedStyle(element).lineHeight)"
        assert max(title.evaluate(lines) for title in page.locator("ol.hits h2").all()) < 4
        shown = page.inner_text("ol.hits")
        assert "gnp.exe" in shown
        assert not {*shown} & {*map(chr, (0x202E, 0x2067))}
        page.fill("input[name=q]", "")
        page.locator("input[name=q]").press_sequentially("needl")
        page.wait_for_selector("#suggestions li")
        assert max(each.evaluate(lines) for each in page.locator("#suggestions span").all()) < 3
        assert "WWW" not in page.inner_text("#suggestions li >> nth=1")
        assert (too_wide(page), faults(page, axe)) == (0, [])
        save(page, f"search-odd-{size}-{scheme}", os.environ.get("NUTCH2PY_SCREENSHOTS"))
