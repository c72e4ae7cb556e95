"""Everything that sees the bytes of the web, besides URLs and documents, in time that grows with their number.

Formats are measured in ``tests/parser/formats/test_growth.py``, URLs in ``tests/url/test_growth.py``, robots.txt and
sitemaps next to their other tests, patterns in ``test_growth_of_patterns.py``. Here are pages as a whole with every
filter, headers, listings, lines of files, queries and requests; and the check that no plug-in was forgotten.
"""

# ruff: noqa: E501

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.output.warc import WarcFileWriter
from nutch2py.fetcher.protocols.fetch_response import FetchResponse, parse_header_lines
from nutch2py.fetcher.protocols.ftp_listing import render_ftp_listing
from nutch2py.fetcher.protocols.header_names import canonical_headers
from nutch2py.fetcher.protocols.response_body import BodyDecoder
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.jobs.inject.seeds import parse_seed_line
from nutch2py.parser.formats.javascript import JSParseFilter
from nutch2py.parser.formats.text import TextParser
from nutch2py.parser.html import html_limits, outlinks
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.parser.html.main_text import extract_main_text, extract_markdown
from nutch2py.parser.mime.mime_types import detect_content_type
from nutch2py.parser.robots_directives import parse_x_robots_tag
from nutch2py.records.webpage import WebPage
from nutch2py.search.query.query_language import parse_query
from nutch2py.search.results.snippet import make_snippet
from nutch2py.support.http_date import parse_http_date
from nutch2py.table.table_import import decode_row
from tests.fuzz.targets import TARGETS
from tests.growth import Shape, assert_linear, repeated, repetitions
from tests.indexer.pages import doc, page
from tests.parser.formats.test_growth import SHAPES as FORMATS
from tests.parser.pages import fetched

URL = "http://h.test/d/p.html"
MARKUP = [
    "<a href=/x>", "<a href=x>y</a>", "<object><a href=x>", "<p>", "<b id=1>", "<div><p>x", "<div class=nav>", "</div>",
    "<table><tr><td>", "<table>x", "<h1>", "<main>", "<article><p>x", "<li><ul>", "<meta name=robots content=none>",
    "<meta http-equiv=refresh content=1>", "<noscript>", "<noscript><base href=x>", "<title>", "<title>x</title>", "<svg>",
    "<template>", "<select><option>", "<script>", "<script>'/a/b.c'</script>", "<a onclick=\"go('/a.b')\">", "<!--", "<!-- x -->",
    "<iframe src=x />", "<a rel=tag href=/x>", "<link rel=canonical href=x>", "<p lang=en>", "<html a=b>", "<body a=b>",
    "<textarea>", "<frameset>", "&amp;", "&", "x ", "中", "é", "http://h.test/ ", "<math><mi>", "<form><input>", "<dd>",
    "<div itemscope itemtype='http://schema.org/A'><p itemprop=a>x", "<div itemscope itemprop=b>", "<p itemprop=a>x</p>",
    "<script type='application/ld+json'>{\"@type\":\"A\",\"a\":\"b\"}</script>", "<div typeof=A><p property=a>x", "<a itemref='a b'>",
    "<script type='application/ld+json'>[", "<script type='application/ld+json'>{\"a\":", "<div id=a itemscope itemref=a>",
]  # fmt: skip
PLUGINS = (
    "parse-(html|js|metatags)|parsefilter-regex|headings|creativecommons|microformats-reltag|language-identifier|"
    "index-structured"
)


def parser_of(kind: type, **properties: str) -> Callable[[str], object]:
    given = {"plugin.includes": PLUGINS, "http.agent.name": "x", "headings.multivalued": "true",
             "parser.html.max.attributes": "20", "parser.html.max.copies": "100", "parser.html.max.depth": "20"}  # fmt: skip
    parser: Any = kind(Configuration.load(overrides={**given, **properties}))
    return lambda text: parser.parse(URL, fetched(text.encode("utf-8", "replace")))


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts with a limit are bounded, so a small limit shows the rest."""
    for size in ("SHORT_PAGE_CHARS", "MANY_TAGS"):
        monkeypatch.setattr(html_limits, size, 0)
    monkeypatch.setattr(outlinks, "MAX_ANCHOR_CHARS", 1000)


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("kind", [HtmlParser, TextParser, JSParseFilter])
def test_html_parser_time_is_linear(kind: type) -> None:
    assert_linear(parser_of(kind), repetitions(MARKUP, ["", "<body><p>"], [""]), 8192)


@pytest.mark.usefixtures("small_bounds")
def test_main_text_time_is_linear() -> None:
    read = parser_of(HtmlParser, **{"parser.html.main.text": "true"})
    assert_linear(read, repetitions(MARKUP, ["<body><main><p>"], [""]), 4096)


def test_main_text_of_marks_and_elements_uses_bounded_memory() -> None:
    head = f"<body><article><p>{'A sentence with several words in it. ' * 10}</p><p>"
    shapes = {name: repeated(f"<{name}>x</{name}> ", head) for name in ("em", "span", "b class=a", "i><u")}
    assert_linear(extract_main_text, shapes, 65_536)
    assert extract_main_text(head + "<em>x</em> y<br>" * 2000 + "<b>last</b>").split("\n")[-1].strip().endswith("last")
    assert extract_main_text(head + "<br>x" * 14_000).count("x") == 14_000
    assert extract_main_text(head + "<br>x" * 31_000) == ""  # the whole text is kept


def _table(piece: str, head: str = "") -> Callable[[int], str]:
    return repeated(piece, f"<body><article><p>{'A sentence with several words in it. ' * 10}</p><table>{head}")


TABLES = {
    "a row of cells": _table("<td>a"),
    "cells that span columns": _table("<td colspan=1000>a"),
    "cells that span columns, escaped": _table("<td colspan='&#49;000'>a"),
    "rows beside a wide one": _table("<tr>", "<tr><td colspan=1000>a"),
    "cells that span rows": _table("<tr><td rowspan=1000>a"),
    "tables in tables": _table("<tr><td colspan=99>a<table>"),
}


@pytest.mark.parametrize("table", TABLES)
def test_main_text_of_tables_uses_bounded_memory(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are filled up to the widest, and spans become cells: a page of 200 KB took a minute, and gigabytes."""
    made = 0

    def counting(header: bool) -> Any:
        nonlocal made
        made += 1
        return cell(header)

    extractor = importlib.import_module("trafilatura.main_extractor")
    cell = extractor.define_cell_type
    monkeypatch.setattr(extractor, "define_cell_type", counting)
    for read in (extract_main_text, lambda html: extract_markdown(html, URL)):
        assert "a" in read(TABLES[table](40_000))
    assert made <= 2 * 40_000  # one for each character, in either form


def test_main_text_keeps_real_tables() -> None:
    row = "<tr><th>year<td colspan=2>1999<td rowspan=3>two and three</tr>"
    read = extract_markdown(_table(row * 300)(300), URL)
    assert read.count("\n| year") == 300


PIECES = ["a", "a,", ",", ":", ";", "=", " ", "\t", '"', "'", "-", "x=y;", "0", "1 ", "a: b, ", "none,", "中", "(", ")", "+a ",
          '"a" ', "a OR ", "a:b ", "NOT ", "-", "((", "\0", "%41", "&q=", "/", "\\", "{", "[", "é", "あ", "ab'"]  # fmt: skip
LINES = ["A: b\n", "a b\n", " b\n", "A\n", ":\n", "\n", "-rw-r--r-- 1 o g 1 Jan 01 12:00 n\n", "01-02-20  03:04PM 1 n\n",
         "01-02-20  03:04", "-rw-r--r-- 1 o g 1 Jan 01 ", "lrwxrwxrwx 1 o g 1 Jan 01 12:00 a -> b\n"]  # fmt: skip
CONF = Configuration.load(overrides={"http.agent.name": "x"})
ANALYZER = Analyzer()


def _body(encoding: str) -> Callable[[str], object]:
    def read(text: str) -> None:
        body = BodyDecoder(encoding, 1 << 20)
        body.feed(text.encode("latin-1", "replace"))
        body.content()

    return read


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "canonical_headers": lambda text: canonical_headers([(text, text), *((line, "x") for line in text.split("\n"))]),
    "header_fields": lambda text: [*parse_header_lines(text.encode().splitlines(keepends=True))],
    "robots_directives": lambda text: parse_x_robots_tag({"X-Robots-Tag": text}, ["a"]),
    "ftp_listing": lambda text: render_ftp_listing("/", text.encode(), True),
    "content_type, header": lambda text: detect_content_type(text, URL, b"", CONF),
    "content_type, URL": lambda text: detect_content_type(None, f"http://h.test/{text}", b"", CONF),
    "content_type, bytes": lambda text: detect_content_type(None, URL, text.encode(), CONF),
    "parse_http_date": parse_http_date,
    "gzip": _body("gzip"),
    "br": _body("br"),
    "zstd": _body("zstd"),
    "deflate": _body("deflate"),
    "parse_query": parse_query,
    "tokens": lambda text: [*ANALYZER.tokens(text)],
    "snippet": lambda text: make_snippet(ANALYZER, text, ["a", "b", "中"]),
    "snippet, words": lambda text: make_snippet(ANALYZER, text, ["a", "bol", "the"], title=text[:200]),
    "seed line": parse_seed_line,
    "line of a dump": lambda text: decode_row(text.encode()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_time_is_linear(name: str) -> None:
    heads = (
        ['{"row":"a","cells":{'] if name == "line of a dump" else ["", "http://h.test/\t"] if "seed" in name else [""]
    )
    assert_linear(FUNCTIONS[name], repetitions(PIECES + LINES, heads, [""]), 16_384)


def test_request_parsing_time_is_linear() -> None:
    ask = TARGETS["server"].make()
    shapes = repetitions(["a", "%41", "&a=b", "a&", "/", "A: b\r\n", "\r\n"], ["GET /?q=", "GET / HTTP/1.1\r\nHost: "], [
        "", " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ])  # fmt: skip
    assert_linear(lambda text: ask(text.encode()), shapes, 16_384)


def test_warc_record_time_is_linear(tmp_path: Path) -> None:
    files = WarcFileWriter(CONF, str(tmp_path))

    def write(text: str) -> None:
        raw = text.encode("latin-1", "replace")
        answer = FetchResponse(URL, 200, raw.splitlines(keepends=True), raw, status_line=raw[:1000])
        files.write(FetchItem("k", URL, WebPage()), answer)

    assert_linear(write, repetitions([*LINES, "é: é\n", "Content-Length: 1\n"], [""], [""]), 16_384)
    files.close()


def _text_page(piece: str) -> Shape:
    def make(length: int) -> WebPage:
        text = piece * (length // len(piece))
        return page(
            title=text, text=text, content=text.encode(), base_url=URL, content_type="text/html", repr_url=URL,
            headers=dict.fromkeys(("Last-Modified", "Content-Type", "Content-Disposition", "Content-Length"), text),
            metadata={name: text.encode() for name in METADATA}, inlinks={URL: text}, outlinks={URL: text},
        )  # fmt: skip

    return make


def _wide_page(length: int) -> WebPage:
    names = [f"http://h{number}.test/" for number in range(length // 60)]
    return page(
        title="t", text="t", base_url=URL, content_type="text/html", headers=dict.fromkeys(names, "x"),
        metadata=dict.fromkeys(names, b"x"), inlinks={name: name for name in names}, outlinks={name: name for name in names},
    )  # fmt: skip


METADATA = ("author", "tag", "feed", "published", "updated", "lang", "Rel-Tag", "subcollection", "h1", "h2", "License-Url",
            "License-Location", "License-Work-Type", "_csh_", "keywords", "CharEncodingForConversion", "caching.forbidden")  # fmt: skip
INDEXING = {found.name: found for found in entry_points(group="nutch2py.indexingfilter")}


@pytest.mark.parametrize("name", INDEXING)
def test_indexing_filter_time_is_linear(name: str) -> None:
    given = {"index.metadata": "keywords", "index.replace.regexp": "title=/a/b/", "index.static": "a:b", "urlmeta.tags": "tag",
             "anchorIndexingFilter.deduplicate": "true", "http.agent.name": "x", "headings": "h1,h2"}  # fmt: skip
    made: Any = INDEXING[name].load()(Configuration.load(overrides=given))
    shapes = {
        piece: _text_page(piece) for piece in ("a", "a ", "é", "9", "-", "/", "\t", ";", "=", "filename=", "'", "中")
    }
    assert_linear(lambda row: made.filter(doc("k", title="t"), URL, row), {**shapes, "wide": _wide_page}, 16_384)


SIGNATURES = {found.name: found for found in entry_points(group="nutch2py.signature")}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature_time_is_linear(name: str) -> None:
    made: Any = SIGNATURES[name].load()(CONF)
    shapes = {piece: _text_page(piece) for piece in ("a", "a ", "é ", "中", "ab cd ", "\n")}
    assert_linear(lambda row: made.calculate(URL, row), shapes, 65_536)


def test_every_parser_and_filter_is_measured() -> None:
    """A parser or filter that reads what the web sends, and that no test of growth names, fails here."""
    measured = {kind.__name__ for kind, _ in FORMATS.values()} | {"HtmlParser", "TextParser", "JSParseFilter"}
    sent_away = {"TikaServerParser"}  # another program reads it
    parsers = {found.load().__name__ for found in entry_points(group="nutch2py.parser")}
    assert parsers - sent_away == measured
    filters = {found.name for found in entry_points(group="nutch2py.parsefilter")}
    assert filters == {"parse-js", "parse-metatags", "parsefilter-regex", "headings", "creativecommons",
                       "microformats-reltag", "language-identifier", "index-structured"}  # fmt: skip
