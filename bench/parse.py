"""parse: ROWS fetched pages of 10 KB with 20 links each; then pages of each format, compared with its library alone."""

from __future__ import annotations

import io
import random
import resource
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.measuring import SETTINGS, Cost, Measurement, Nutch
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, put_list_entry
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.webpage import CrawlStatus, Mark, ParseStatusCode, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

ROWS = (10_000,)
AIMS = {10_000: 15.0}
BATCH = "1600000000-1"
_HOST_PAGES = 200
_LINKS = 20
_REPEATS = 200
_TIKA_JAR = Path(__file__).parent.parent / ".cache" / "tika" / "tika-parsers-1.28.5-tests.jar"
_SAMPLES = {
    "PDF": "testPDFVarious.pdf", "docx": "testWORD_various.docx", "xlsx": "testEXCEL.xlsx",
    "pptx": "testPPT_various.pptx",
    "odt": "testODFwithOOo3.odt", "doc": "testWORD_various.doc", "xls": "testEXCEL.xls", "ppt": "testPPT_various.ppt",
    "RTF": "testRTFVarious.rtf", "EPUB": "testEPUB.epub", "RSS": "rsstest_20.rss", "mail": "testRFC822_dkim.eml",
    "JPEG": "testJPEG_EXIF.jpg",
}  # fmt: skip
_SYLLABLES = [a + b for a in "bcdfghjklm" for b in "aeiou"]


def make_page(number: int, pages: int) -> tuple[str, bytes]:
    """Return URL and content of a page: paragraphs with links, four in five of them to its own host."""
    chance = random.Random(number)
    words = [a + b for a in _SYLLABLES for b in _SYLLABLES[::3]]
    first = number - number % _HOST_PAGES
    parts = [f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Page {number}</title></head><body>"]
    for place in range(_LINKS):
        own = place < _LINKS * 4 // 5
        other = first + chance.randrange(min(_HOST_PAGES, pages - first)) if own else chance.randrange(pages)
        target = f"p{other % _HOST_PAGES:04d}.html" if own else _url(other)
        anchor = " ".join(chance.choices(words, k=3))
        parts.append(f'<p>{" ".join(chance.choices(words, k=88))} <a href="{target}">{anchor}</a></p>')
    return _url(number), "\n".join([*parts, "</body></html>"]).encode()


def _url(number: int) -> str:
    return f"http://h{number // _HOST_PAGES:03d}.bench.example/p{number % _HOST_PAGES:04d}.html"


def build(conf: Configuration, pages: int) -> None:
    """Create the table and the batch list as of after the FetcherJob."""
    store, lists = open_store(conf, WebPage), BatchListStore(conf)
    store.create()
    lists.set_state(BATCH, BatchState.GENERATING)
    with store.batch() as batch, lists.store.batch() as entries:
        for number in range(pages):
            url, content = make_page(number, pages)
            page = WebPage()
            page.base_url, page.content, page.content_type = url, content, "text/html"
            page.status = CrawlStatus.FETCHED
            page.headers = {"Content-Type": "text/html", "Content-Length": str(len(content))}
            page.markers = {Mark.DISTANCE: "0", Mark.GENERATE: BATCH, Mark.FETCH: BATCH}
            key = reverse_url(url)
            batch.put(key, page)
            put_list_entry(entries, BATCH, "00000", number, key)
    lists.set_state(BATCH, BatchState.GENERATED, pages)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py parse``, then each format separately; a record is a page."""
    nutch = Nutch(folder, runner)
    build(Configuration.load(overrides=nutch.settings), rows)
    cost = nutch("parse", BATCH)
    work = f"parse and store {rows:,} pages, {rows * _LINKS:,} links"
    more = Nutch(folder / "more", runner, **{
        "plugin.includes": f"{SETTINGS['plugin.includes']}|index-structured", "parser.html.main.text": "true",
    })  # fmt: skip
    more.folder.mkdir()
    build(Configuration.load(overrides=more.settings), rows)
    return [
        Measurement(work, rows, cost, "pages", AIMS.get(rows)),
        Measurement(f"{work}, main text, structured data", rows, more("parse", BATCH), "pages"),
        *formats(),
    ]


def formats() -> Iterable[Measurement]:
    """Measure repeated parsing of one document of each format, with Tika's documents when available."""
    conf = Configuration.load(overrides={"http.agent.name": "bench"})
    parsing = RowParser(conf)
    samples = [("HTML", *make_page(7, 10_000))]
    if _TIKA_JAR.is_file():
        with zipfile.ZipFile(_TIKA_JAR) as jar:
            samples += [
                (kind, f"http://h.bench.example/{name}", jar.read(f"test-documents/{name}"))
                for kind, name in _SAMPLES.items()
            ]
    for kind, url, body in samples:
        page = create_page(url, body, "text/html" if kind == "HTML" else None, conf)
        if parsing.parse(url, page).major != ParseStatusCode.SUCCESS:
            continue
        size = f"{len(body) / 1000:,.0f} KB"
        parser = parsing.parser_factory.get_parsers(page.content_type or "")[0]
        yield _repeated(f"{kind}, {size}: the parser", lambda p=parser, u=url, g=page: p.parse(u, g))  # type: ignore[misc]
        bare = _BARE.get(kind)
        if bare is not None:
            yield _repeated(f"{kind}, {size}: {bare[0]} bare", lambda call=bare[1], b=body: call(b))  # type: ignore[misc]


def _repeated(work: str, call: Callable[[], Any]) -> Measurement:
    call()
    started, wall = time.process_time(), time.monotonic()
    for _ in range(_REPEATS):
        call()
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cost = Cost(time.process_time() - started, time.monotonic() - wall, 0, largest)
    return Measurement(work, _REPEATS, cost, "pages")


def _selectolax(body: bytes) -> object:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(body.decode())
    links = [(node.attributes.get("href"), node.text()) for node in tree.css("a[href]")]
    return links, tree.root.text() if tree.root else ""


def _pdfium(body: bytes) -> object:
    import pypdfium2

    pdf = pypdfium2.PdfDocument(body)
    text = [page.get_textpage().get_text_range() for page in pdf]
    pdf.close()
    return text


def _zip_and_lxml(body: bytes) -> object:
    """Parse every XML file of a package, and collect all text."""
    from lxml import etree

    with zipfile.ZipFile(io.BytesIO(body)) as package:
        return [
            "".join(etree.fromstring(package.read(name)).itertext())
            for name in package.namelist()
            if name.endswith((".xml", ".opf", ".ncx", ".xhtml", ".html")) and package.getinfo(name).file_size
        ]


def _lxml(body: bytes) -> object:
    from lxml import etree

    return "".join(etree.fromstring(body).itertext())


def _olefile(body: bytes) -> object:
    """Open the file and read every stream: no installed library reads these formats."""
    import olefile

    with olefile.OleFileIO(io.BytesIO(body)) as ole:
        return [ole.openstream(path).read() for path in ole.listdir()]


def _email(body: bytes) -> object:
    import email

    return [part.get_payload(decode=True) for part in email.message_from_bytes(body).walk()]


_BARE: dict[str, tuple[str, Callable[[bytes], object]]] = {
    "HTML": ("selectolax", _selectolax),
    "PDF": ("pypdfium2", _pdfium),
    **dict.fromkeys(("docx", "xlsx", "pptx", "odt", "EPUB"), ("zipfile and lxml", _zip_and_lxml)),
    **dict.fromkeys(("doc", "xls", "ppt"), ("olefile", _olefile)),
    "RSS": ("lxml", _lxml),
    "mail": ("email", _email),
}
