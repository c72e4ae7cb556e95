"""import: pages of WARC and WACZ files of any origin become fetched rows; lists of URLs become seeds."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.errors import InputError
from nutch2py.fetcher.output.page_updater import get_crawl_status
from nutch2py.jobs.export.cdxj_index import to_urlkey
from nutch2py.jobs.page_import.warc_reader import WarcReader, WarcRecord
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.conftest import MAP_SIZE
from tests.jobs import recorded, rows

DATE = "2026-11-20T10:00:00Z"
DATE_MS = 1_795_168_800_000


def load_conf(folder: Path, **properties: Any) -> Configuration:
    overrides = {
        "storage.data.store": f"embedded:{folder / 'imported'}",
        "storage.embedded.map.size": MAP_SIZE,
        "http.agent.name": "nutch-test",
    }
    return Configuration.load(overrides=overrides | {name.replace("_", "."): str(v) for name, v in properties.items()})


def record(
    url: str, block: bytes, kind: str = "response", date: str = DATE, length: int | None = None, **headers: str
) -> bytes:
    """Return a record as plain text."""
    lines = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": date,
        "Content-Type": "application/http; msgtype=response",
        **{name.replace("_", "-"): value for name, value in headers.items()},
        "Content-Length": str(len(block) if length is None else length),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1") + body


def import_bytes(conf: Configuration, tmp_path: Path, data: bytes, name: str = "x.warc", **options: Any) -> Any:
    (tmp_path / name).write_bytes(data)
    with Crawl(conf) as crawl:
        return crawl.import_pages(tmp_path / name, **options)


@pytest.mark.parametrize("export_format", ["warc", "wacz"])
def test_exported_archive_becomes_the_same_rows(
    conf: Configuration, recording: Path, tmp_path: Path, export_format: str
) -> None:
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    before = rows.pages(conf)
    new = load_conf(tmp_path)
    with Crawl(conf) as old:
        exported = old.export_pages(tmp_path / "out", export_format, all_rows=True)
    with Crawl(new) as crawl:
        result = crawl.import_pages(tmp_path / "out", filter_urls=False, normalize=False)
    assert result.pages == exported.pages > 200
    after = rows.pages(new)
    assert len(after) == exported.pages
    with_body = (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED)
    for url, page in after.items():
        old_page = before[url]
        assert page.protocol_status is not None
        assert old_page.protocol_status is not None
        is_unchanged = old_page.protocol_status.code == Code.NOTMODIFIED
        expected = get_crawl_status(old_page.protocol_status)
        assert page.status == (CrawlStatus.FETCHED if is_unchanged else expected)
        assert page.protocol_status.code == (Code.SUCCESS if is_unchanged else old_page.protocol_status.code)
        if old_page.status in with_body:
            assert page.content == old_page.content
            assert page.base_url == url
        headers = dict(old_page.headers.decoded_items())
        found = dict(page.headers.decoded_items())
        if "Content-Type" not in headers:
            found.pop("Content-Type", None)
        assert found == headers
        assert page.markers[Mark.FETCH] == page.markers[Mark.GENERATE] == result.batch_id


SHAPES: dict[str, Callable[[list[bytes]], bytes]] = {
    "plain": b"".join,
    "record_per_member": lambda records: b"".join(map(gzip.compress, records)),
    "one_member": lambda records: gzip.compress(b"".join(records)),
    "members_within_records": lambda records: b"".join(
        gzip.compress(b"".join(records)[at : at + 100]) for at in range(0, sum(map(len, records)), 100)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_archives_of_other_programs_become_rows(tmp_path: Path, shape: str) -> None:
    chunked = b"5;x=1\r\n<html\r\n3\r\n>ab\r\n0\r\n\r\n"
    records = [
        record("", b"software: Heritrix\r\n", "warcinfo"),
        record("dns:a.test", b"20261120\nA 1.2.3.4", Content_Type="text/dns"),
        record("http://a.test/chunked", response(chunked, "Transfer-Encoding: chunked", "Content-Type: text/html")),
        record("<http://a.test/gzip>", response(gzip.compress(b"zip"), "content-encoding: gzip")),
        record("http://a.test/decoded", response(b"plain", "Transfer-Encoding: chunked", "Content-Encoding: gzip")),
        record(
            "http://a.test/cc",
            response(b"text", "X-Crawler-Content-Encoding: br", "X-Crawler-Content-Length: 9", "Content-Length: 4"),
        ),
        record("http://a.test/cc", b"GET / HTTP/1.1\r\n\r\n", "request"),
        record("http://a.test/cc", b"fetchTimeMs: 1\r\n", "metadata"),
        record("urn:text:http://a.test/", b"text", "resource", Content_Type="text/plain"),
        record("http://a.test/pdf", b"%PDF-", "resource", Content_Type="application/pdf"),
        record("http://a.test/moved", response(b"", "Location: /cc", status="301 Moved")),
        record("http://a.test/gone", response(b"", status="410 Gone")),
        record("http://a.test/busy", response(b"", status="503")),
        record("http://a.test/two", response(b"2", status="200").replace(b"HTTP/1.1", b"HTTP/2")),
        record("http://a.test/lf", b"HTTP/1.0 200 OK\nX: 1\n\nbody"),
    ]
    conf = load_conf(tmp_path)
    result = import_bytes(conf, tmp_path, SHAPES[shape](records), "x.warc.gz")
    assert result.skipped == {"metadata": 1, "other_protocol": 2, "request": 1, "warcinfo": 1}
    found = {url.removeprefix("http://a.test/"): page for url, page in rows.pages(conf).items()}
    assert {name: (page.status, page.content) for name, page in found.items()} == {
        "chunked": (CrawlStatus.FETCHED, b"<html>ab"),
        "gzip": (CrawlStatus.FETCHED, b"zip"),
        "decoded": (CrawlStatus.FETCHED, b"plain"),
        "cc": (CrawlStatus.FETCHED, b"text"),
        "pdf": (CrawlStatus.FETCHED, b"%PDF-"),
        "moved": (CrawlStatus.REDIR_PERM, b""),
        "gone": (CrawlStatus.GONE, None),
        "busy": (CrawlStatus.RETRY, None),
        "two": (CrawlStatus.FETCHED, b"2"),
        "lf": (CrawlStatus.FETCHED, b"body"),
    }
    assert found["cc"].headers == {"Content-Encoding": "br", "Content-Length": "9"}
    assert found["pdf"].content_type == "application/pdf"
    assert found["moved"].outlinks == {"http://a.test/cc": ""}
    assert {page.fetch_time for page in found.values()} == {DATE_MS}
    assert all(MetadataKey.RESPONSE_TIME not in page.metadata for page in found.values())


def test_jobs_continue_with_batch_of_import(tmp_path: Path) -> None:
    conf = load_conf(tmp_path)
    page = response(b"<title>T</title><a href=/b>to b</a>", "Content-Type: text/html")
    result = import_bytes(conf, tmp_path, record("http://a.test/", page), batch_id="mine")
    assert result.batch_id == "mine"
    with Crawl(conf) as crawl:
        assert crawl.parse("mine").count("ParserStatus", "success") == 1
        crawl.updatedb("mine")
    found = rows.pages(conf)
    assert found["http://a.test/"].title == "T"
    assert found["http://a.test/b"].inlinks == {"http://a.test/": "to b"}
    assert found["http://a.test/"].fetch_time == DATE_MS + 2_592_000_000


def test_later_capture_wins_and_rows_are_not_made_older(tmp_path: Path) -> None:
    conf = load_conf(tmp_path)
    captures = [
        record("http://a.test/", response(f"{day}".encode()), date=f"2026-11-{day}T10:00:00.123456Z")
        for day in (12, 14, 13, 14)
    ]
    result = import_bytes(conf, tmp_path, b"".join(captures), batch_id="1")
    assert (result.pages, result.skipped) == (2, {"not_newer": 2})
    assert rows.pages(conf)["http://a.test/"].content == b"14"
    again = import_bytes(conf, tmp_path, b"".join(captures), batch_id="1")
    assert (again.pages, again.skipped) == (0, {"not_newer": 4})
    other = import_bytes(conf, tmp_path, record("http://a.test/", response(b"new")), batch_id="2")
    assert (other.pages, other.skipped) == (0, {"in_another_batch": 1})


def test_revisit_has_content_of_its_original(tmp_path: Path) -> None:
    conf = load_conf(tmp_path)
    records = [
        record("http://a.test/1", response(b"same"), WARC_Payload_Digest="sha1:A"),
        record("http://a.test/2", response(b"", "X: 2"), "revisit", WARC_Payload_Digest="sha1:A"),
        record("http://a.test/3", response(b""), "revisit", WARC_Refers_To_Target_URI="http://a.test/1"),
        record("http://a.test/4", response(b""), "revisit", WARC_Payload_Digest="sha1:B"),
        record("http://a.test/1", response(b"", status="304 x"), "revisit", date="2026-11-21T10:00:00Z"),
        record("http://a.test/5", response(b"", status="304 x"), "revisit"),
    ]
    result = import_bytes(conf, tmp_path, b"".join(records))
    assert (result.pages, result.skipped) == (4, {"revisit_without_original": 2})
    found = rows.pages(conf)
    assert {page.content for page in found.values()} == {b"same"}
    assert found["http://a.test/1"].status == CrawlStatus.NOTMODIFIED
    assert found["http://a.test/2"].headers == {"X": "2"}


GOOD = record("http://a.test/good", response(b"good"))


@pytest.mark.parametrize(
    ("data", "skipped"),
    [
        (record("http://a.test/x", response(b"cut"))[:-9] + GOOD, {"wrong_length": 1}),
        (record("http://a.test/x", response(b"x"), length=10**12) + GOOD, {"wrong_length": 1}),
        (record("http://a.test/x", response(b"a line"), length=20) + GOOD, {"wrong_length": 1}),
        (record("http://a.test/x", response(b"x")).replace(b"Content-Length", b"Length") + GOOD, {"no_length": 1}),
        (record("http://a.test/x", response(b"x")).replace(b"Length: ", b"Length: -") + GOOD, {"no_length": 1}),
        (record("http://a.test/x", response(b"x"), date="yesterday") + GOOD, {"no_date": 1}),
        (record("http://a.test/x", response(b"x"), date="0001-01-01T00:00:00Z") + GOOD, {"no_date": 1}),
        (record("http://a.test/x", b"no HTTP at all") + GOOD, {"not_http": 1}),
        (record("http://a.test/x", b"") + GOOD, {"not_http": 1}),
        (record("http://a.test/x", response(b"x", "X: " + "y" * 400_000)) + GOOD, {"not_http": 1}),
        (record("http://[/", response(b"x")) + GOOD, {"filtered": 1}),
        (record("", response(b"x")) + GOOD, {"malformed_url": 1}),
        (record("http://a.test/x.gif", response(b"x")) + GOOD, {"filtered": 1}),
        (record("http://a.test/x", response(b"x"), "dream") + GOOD, {"other_record": 1}),
        (b"\0\xff\r\n" * 9 + GOOD, {"not_a_record": 1}),
        (record("http://a.test/x", b"", X="y" * 70_000) + GOOD, {"header_too_long": 1}),
        (gzip.compress(b"WARC/1.0\r\nWARC-Type: response\r\n\r\n") + gzip.compress(GOOD), {"no_length": 1}),
        (gzip.compress(record("http://a.test/x", b"", length=99)) + gzip.compress(GOOD), {"wrong_length": 1}),
        (gzip.compress(GOOD)[:-30] + gzip.compress(GOOD), {"damaged_gzip": 1}),
        (gzip.compress(b"WARC/1.0\r\n") + b"\x1f\x8b\x08junk" * 9 + gzip.compress(GOOD), None),
        (gzip.compress(GOOD) + b"junk", {"damaged_gzip": 1}),
        (gzip.compress(GOOD) + bytes(1000), {}),
        (gzip.compress(GOOD) + gzip.compress(GOOD)[:-5], None),
        (b"PK\x03\x04 no zip", {"damaged_zip": 1}),
    ],
    ids=range(24),
)  # fmt: skip
def test_hostile_records_are_skipped_and_counted(tmp_path: Path, data: bytes, skipped: dict[str, int] | None) -> None:
    conf = load_conf(tmp_path)
    result = import_bytes(conf, tmp_path, data, "x.warc.gz")
    if skipped is not None:
        assert result.skipped == skipped
    assert [*rows.pages(conf)] == ([] if data.startswith(b"PK") else ["http://a.test/good"])


def read(data: bytes, limit: int = 1000) -> list[WarcRecord | str]:
    return [*WarcReader(BytesIO(data), limit)]


def test_reader_ends_with_every_cut_and_every_changed_byte() -> None:
    records = [record(f"http://a.test/{number}", response(b"x" * number * 50)) for number in range(4)]
    for data in (b"".join(records), b"".join(map(gzip.compress, records)), gzip.compress(b"".join(records))):
        whole = read(data)
        assert [found.url for found in whole if isinstance(found, WarcRecord)] == [
            f"http://a.test/{number}" for number in range(4)
        ]
        for size in range(len(data)):
            assert len(read(data[:size])) <= 6
        luck = random.Random(1)
        for at in range(0, len(data), 3):
            changed = bytearray(data)
            changed[at] = luck.randrange(256)
            assert len(read(bytes(changed))) <= 12


def test_long_padding_after_member_is_skipped() -> None:
    assert len(read(gzip.compress(GOOD) + bytes(70 << 20))) == 1
    assert len(read(gzip.compress(GOOD) + bytes(100_000) + gzip.compress(GOOD))) == 2


def test_bombs_are_cut_at_limit(tmp_path: Path) -> None:
    conf = load_conf(tmp_path, http_content_limit=1000)
    bomb = gzip.compress(bytes(20 << 20))
    records = [
        record("http://a.test/body", response(bomb, "Content-Encoding: gzip")),
        record("http://a.test/block", response(bytes(20 << 20))),
    ]
    result = import_bytes(conf, tmp_path, b"".join(zlib_member(each) for each in records))
    assert result.pages == 2
    assert {len(page.content or b"") for page in rows.pages(conf).values()} == {1000}


def zlib_member(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def test_lists_of_urls_become_seeds(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "a.txt").write_text("# no URL\nhttp://a.test/txt\thttp.x=1\n\n")
    (folder / "b.csv").write_text('Score,URL,topic\n2.5,"http://a.test/csv","a\nb"\n1,,\n')
    (folder / "c.csv").write_text("http://a.test/bare,0.5\n")
    (folder / "d.cdxj").write_text(
        " CDX N b a\n"
        + f'{to_urlkey("http://a.test/cdxj")} 20261120 {{"url": "http://a.test/cdxj"}}\n' * 3
        + "test,a)/x 2026 {no json\nonly two\ntest,a)/old 2026 http://a.test/old text/html 200 X - - 1 2 f\n"
    )
    urls = "".join(f"<url><loc>http://a.test/{name}</loc></url>" for name in ("s1", "s2"))
    (folder / "e.xml.gz").write_bytes(gzip.compress(f"<urlset>{urls}</urlset>".encode()))
    (folder / "f.xml").write_text("<sitemapindex><sitemap><loc>http://a.test/more.xml</loc></sitemap></sitemapindex>")
    (folder / "g.xml").write_text("<html>no sitemap</html>")
    (folder / "h.txt.gz").write_bytes(gzip.compress(b"http://a.test/last\n" * 9)[:-9])
    conf = load_conf(tmp_path)
    with Crawl(conf) as crawl:
        result = crawl.import_pages(folder)
    assert result.batch_id == ""
    assert result.skipped == {"damaged_gzip": 1, "malformed_line": 4}
    found = {url.removeprefix("http://a.test/"): page for url, page in rows.pages(conf).items()}
    assert {*found} == {"txt", "csv", "bare", "cdxj", "old", "s1", "s2", "more.xml", "last"}
    assert (found["csv"].score, found["bare"].score, found["txt"].score) == (2.5, 0.5, 1.0)
    assert found["csv"].metadata["topic"] == b"a b"
    assert found["more.xml"].markers[Mark.INJECT] == "s"
    assert found["txt"].metadata["http.x"] == b"1"


def test_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), Crawl(load_conf(tmp_path)) as crawl:
        crawl.import_pages(tmp_path / "none.warc")
    assert not (tmp_path / "imported").exists()


def test_existing_row_keeps_what_fetch_keeps(tmp_path: Path) -> None:
    conf = load_conf(tmp_path)
    rows.put(conf, {"http://a.test/": {"score": 7.0, "inlinks": {"http://b.test/": "b"}, "marks": {Mark.INJECT: "y"}}})
    import_bytes(conf, tmp_path, record("http://a.test/", response(b"x")))
    page = rows.pages(conf)["http://a.test/"]
    assert (page.score, dict(page.inlinks), page.markers[Mark.INJECT]) == (7.0, {"http://b.test/": "b"}, "y")
    assert page.protocol_status is not None
    assert page.protocol_status.code == Code.SUCCESS
