"""Odd pages, as Chromium reads them: encodings, titles, bases, links, refreshes."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.parser.links.outlink_filter import OutlinkFilter
from nutch2py.parser.parsechecker import create_page
from nutch2py.records.webpage import MetadataKey, ParseStatusCode
from tests.suites.odd_pages import OddPage, odd_pages
from tests.suites.suite import Case, Goal

GOALS = tuple(Goal(kind, 1.0) for kind in ("charset", "links", "base", "refresh", "title"))
_ASK = """
const links = [...document.querySelectorAll('a,area')]
  .map(e => [e, e.namespaceURI.endsWith('svg') ? e.href.baseVal : e.getAttribute('href')])
  .filter(([e, href]) => href !== null && (e.firstChild || e.localName == 'area'));
const absolute = ([e, href]) => { try { return new URL(href, document.baseURI).href; } catch { return ''; } };
const svg = links.filter(([e]) => e.namespaceURI.endsWith('svg')).map(absolute);
const html = links.filter(([e]) => document.links.length && [...document.links].includes(e)).map(([e]) => e.href);
return [document.characterSet, document.title, document.baseURI, [...html, ...svg]];
"""
_PATIENCE = 2.0  # seconds for a refresh without delay
_SAME = {"gb18030": "gbk", "gb2312": "gbk", "x-windows-949": "euc-kr", "utf-16": "utf-16le"}
"""Names under which Nutch stores encodings, and those of the standard."""
_UNREADABLE = "the standard shows nothing readable: "
_OWN = "the HTML standard, and Firefox, have it so: "
_BODY = "directives in a body are what users wrote: "
_NUL = "NUL is taken out of every page: "
_NAMED = {
    "text/html; charset=hz-gb-2312 ": _UNREADABLE,
    "text/html; charset=hz-gb-2312 <meta charset=euc-jp>": _UNREADABLE,
    "text/html; charset=x-user-defined ": _UNREADABLE,
    "text/html; charset=x-user-defined <meta charset=euc-jp>": _UNREADABLE,
    "<meta charset=gbk charset=utf-8>": _OWN,
    "<script>'<meta charset=gbk>'</script>": _OWN,
    "<title><meta charset=gbk></title>": _OWN,
    "<style><meta charset=gbk></style>": _OWN,
    "<meta charset=g&#98;k>": "a label with a reference in it is unknown: ",
    "..;url=x": _OWN,
    "-1;url=x": "as Nutch: ",
    "<body>{}": _BODY,
    "<p>{}": _BODY,
    "<svg>{}</svg>": _BODY,
    "href='x\0y'": _NUL,
    "<a\0 href={}>t</a>": _NUL,
    "<title>a\0b</title>": _NUL,
    "<base href='x:y'>": "such a base is skipped: ",
    "<base href='http://[/'>": "such a base is skipped: ",
    "<noscript><title>a</title></noscript>": "as readers without scripts: ",
    "href='http:////OTHER/x'": "what has no host leads nowhere, as in Nutch: ",
    "href=/x/./y/%2e%2e/z": "escaped dots are not resolved, as in Nutch: ",
}


class _Server(ThreadingHTTPServer):
    """Serves the pages by number, and records all other requests."""

    daemon_threads = True

    def __init__(self, pages: list[OddPage]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = pages
        self.asked = ""
        self.came = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        number = path.removeprefix("/pages/")
        page = self.server.pages[int(number)] if number.isdigit() and "?" not in self.path else None
        if page is None and self.headers.get("Sec-Fetch-Dest") == "document":
            self.server.asked = self.path
            self.server.came.set()
        kind, body = (page.content_type, page.body) if page else ("text/plain; charset=utf-8", b"elsewhere")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # it has moved to another page
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def cases(data: Path) -> Iterator[Case]:
    """Yield a case for each page; a difference that is meant is one of the part "by choice"."""
    pages = [*odd_pages()]
    server = _Server(pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    conf = Configuration.load(overrides={
        "http.agent.name": "suites", "parser.html.outlinks.ignore_tags": "img,script,link,frame,iframe",
    })  # fmt: skip
    parser, rules = HtmlParser(conf), OutlinkFilter(conf)
    try:
        with _browser() as browser:
            for number, page in enumerate(pages):
                url = f"{server.address}/pages/{number}"
                expected = _seen(server, browser, url, page.kind)
                found = _found(parser, conf, url, page)
                if page.kind in ("links", "base"):
                    found, expected = ([_rows(rules, each) for each in links] for links in (found, expected))
                    found, expected = (sorted({*filter(None, each)}) for each in (found, expected))
                elif page.kind == "charset":
                    found = _SAME.get(found, found)
                difference = f"{json.dumps(found, ensure_ascii=False)}, not {json.dumps(expected, ensure_ascii=False)}"
                left = "" if found == expected else difference.replace(server.address, "")
                reason = _NAMED.get(page.name.removeprefix("after 800: "))
                chosen = bool(left and reason)
                yield Case("by choice" if chosen else page.kind, repr(page.name), f"{reason}{left}" if chosen else left)
    finally:
        server.shutdown()
        server.server_close()


def _rows(rules: OutlinkFilter, url: str) -> str | None:
    """Return the URL of the row that a link leads to."""
    return rules.accept(url)


def _seen(server: _Server, browser: Any, url: str, kind: str) -> Any:
    """Return the browser's result for a page, by the kind of its oddity."""
    server.asked = ""
    server.came.clear()
    browser.get(url)
    if kind == "refresh":
        server.came.wait(_PATIENCE)
        return server.asked
    charset, title, _, links = browser.execute_script(_ASK)
    return charset.lower() if kind == "charset" else title if kind == "title" else links


def _found(parser: HtmlParser, conf: Configuration, url: str, page: OddPage) -> Any:
    """Return the result of this program for a page."""
    row = create_page(url, page.body, page.content_type, conf)
    parse = parser.parse(url, row)
    if page.kind == "charset":
        return row.metadata[MetadataKey.CHARSET].decode()
    if page.kind == "title":
        return parse.title
    if page.kind == "refresh":
        target = urlsplit(urldefrag(parse.args[0]).url) if parse.minor == ParseStatusCode.REDIRECT else None
        return "" if target is None else target.path + (f"?{target.query}" if target.query else "")
    return [link.url for link in parse.outlinks]


@contextmanager
def _browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        raise SystemExit("no browser: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    resolver = "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="nutch2py-suite-") as profile:
        own = f"user-data-dir={profile}"
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", resolver, own):
            options.add_argument(f"--{argument}")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.set_page_load_timeout(30)
            yield browser
        finally:
            browser.quit()
