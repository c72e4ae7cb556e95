"""The ParserJob over rows made here: formats of all kinds in one batch, and sitemaps."""

from __future__ import annotations

import io
import zipfile

from nutch2py.conf import Configuration
from nutch2py.jobs.generate import generate
from nutch2py.jobs.parse import parse
from nutch2py.webpage import CrawlStatus, Mark, WebPage
from tests.jobs.rows import marked, pages, put

BATCH = "1600000000-1"


def fetched(content: bytes, content_type: str, **marks: str) -> dict[str, object]:
    """Give the row of a fetched page of the batch."""
    return {
        "status": CrawlStatus.FETCHED, "content": content, "content_type": content_type,
        "marks": {Mark.GENERATE: BATCH, Mark.FETCH: BATCH, **marks},
    }  # fmt: skip


def test_one_batch_holds_all_formats_and_a_broken_page_stops_none(conf: Configuration) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", "<d><p><t>words</t></p></d>")
    put(conf, {
        "http://h.test/a.html": fetched(b"<title>page</title>", "text/html"),
        "http://h.test/b.docx": fetched(out.getvalue(), "application/x-tika-ooxml"),
        "http://h.test/c.pdf": fetched(b"%PDF-1.4 and nothing", "application/pdf"),
        "http://h.test/d.rtf": fetched(b"{\\rtf1 rich}", "application/rtf"),
        "http://h.test/e": fetched(b"\0", "application/x-unknown"),
    })  # fmt: skip
    result = parse(conf, "-all")
    assert result.counters["ParserStatus"] == {"success": 3, "failed": 2}
    texts = {url: page.text for url, page in pages(conf, {WebPage.text}).items()}
    assert texts == {"http://h.test/a.html": "page", "http://h.test/b.docx": "words", "http://h.test/d.rtf": "rich"}
    statuses = {url: page.parse_status for url, page in pages(conf, {WebPage.parse_status}).items()}
    assert [status.minor for status in statuses.values() if status and status.major == 2] == [203, 200]


def test_pages_that_a_sitemap_lists_are_generated(conf: Configuration) -> None:
    body = "".join(f"<url><loc>http://h.test/{name}</loc></url>" for name in ("new", "seed", "known"))
    put(conf, {
        "http://h.test/map.xml": fetched(f"<urlset>{body}</urlset>".encode(), "application/xml", **{Mark.INJECT: "s"}),
        "http://h.test/seed": {"marks": {Mark.INJECT: "s"}},
        "http://h.test/known": {"title": "kept", "status": CrawlStatus.UNFETCHED},
    })  # fmt: skip
    assert parse(conf, "-all", sitemap=True).counters["ParserStatus"] == {"success": 1, "sitemap_urls": 3}
    assert marked(conf, Mark.INJECT, "y") == {"http://h.test/new", "http://h.test/known"}
    assert marked(conf, Mark.INJECT, "s") == {"http://h.test/map.xml", "http://h.test/seed"}  # marks that were there
    assert pages(conf, {WebPage.title})["http://h.test/known"].title == "kept"
    generate(conf, batch_id="2-2")
    assert marked(conf, Mark.GENERATE, "2-2") >= {"http://h.test/new", "http://h.test/known"}
