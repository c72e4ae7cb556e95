"""export -format warc, cdxj, wacz: archives of the table that other programs read."""

from __future__ import annotations

import errno
import gzip
import json
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.errors import InputError, StoreError, UsageError
from nutch2py.jobs.export import archive_writer, cdxj_index, export_job
from nutch2py.jobs.export.cdxj_index import LineSorter, to_urlkey
from nutch2py.jobs.export.warc_records import make_record
from nutch2py.mapreduce.driver import run_job
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.table import open_store
from tests.jobs import recorded, rows

NOON = 1_795_694_400_000
"""2026-11-26 12:00 UTC."""
BODY = b"<html><title>One</title>" + bytes(range(256))


class Record(NamedTuple):
    kind: str
    url: str
    warc: dict[str, str]
    status: str
    http: dict[str, str]
    content: bytes


@pytest.fixture
def pages(conf: Configuration) -> Configuration:
    """A table with a page of each kind that an archive tells apart."""
    fetched = {"status": CrawlStatus.FETCHED, "fetch_time": NOON, "marks": {Mark.FETCH: "1"}}
    success = fetched | {"protocol_status": ProtocolStatus(Code.SUCCESS), "content_type": "text/html"}
    rows.put(
        conf,
        {
            "http://a.test/": success | {
                "content": BODY, "title": "One", "text": "one two",
                "headers": {"Content-Type": "text/html; charset=x", "X-Name": "\xe9", "Content-Length": "7"},
            },
            "http://a.test/again": success | {"content": BODY, "headers": {"Content-Encoding": "gzip"}},
            "http://a.test/cut": success | {"content": b"abc", "headers": {"Content-Length": "10"}},
            "http://a.test/empty": success | {"content": b""},
            "http://a.test/none": success,
            "file:/tmp/x.txt": success | {"content": b"file", "content_type": "text/plain"},
            "http://a.test/same": fetched | {
                "status": CrawlStatus.NOTMODIFIED, "content": b"old", "content_type": "text/plain",
                "protocol_status": ProtocolStatus(Code.NOTMODIFIED, ("x",)), "headers": {"ETag": '"1"'},
            },
            "http://a.test/moved": fetched | {
                "status": CrawlStatus.REDIR_PERM, "content": b"", "headers": {"Location": "/"},
                "protocol_status": ProtocolStatus(Code.MOVED, ("http://a.test/",)),
            },
            "http://a.test/gone": fetched | {
                "status": CrawlStatus.GONE, "content": b"of an earlier fetch", "headers": {"Content-Length": "9"},
                "protocol_status": ProtocolStatus(Code.GONE, ("Http: 410 url=http://a.test/gone",)),
            },
            "http://a.test/busy": fetched | {
                "status": CrawlStatus.RETRY,
                "protocol_status": ProtocolStatus(Code.EXCEPTION, ("Http code=503, url=http://a.test/busy",)),
            },
            "http://a.test/denied": fetched | {
                "status": CrawlStatus.GONE, "protocol_status": ProtocolStatus(Code.ROBOTS_DENIED),
            },
            "http://a.test/new": {},
        },
    )  # fmt: skip
    return conf


def read_warc(stream: Any) -> Iterator[Record]:
    """Yield the records of a WARC file, whose digests must be right."""
    for record in ArchiveIterator(stream, check_digests="raise"):
        head = record.http_headers
        yield Record(
            record.rec_type,
            record.rec_headers.get_header("WARC-Target-URI"),
            dict(record.rec_headers.headers),
            head.get_statuscode() if head else "",
            dict(head.headers) if head else {},
            record.content_stream().read(),
        )


def read_warc_bytes(data: bytes) -> list[Record]:
    return [*read_warc(BytesIO(data))]


def read_folder(folder: Path) -> list[Record]:
    return [each for path in sorted(folder.glob("*.warc.gz")) for each in read_warc_bytes(path.read_bytes())]


def export(conf: Configuration, folder: Path, export_format: str, **options: Any) -> dict[str, Any]:
    """Export pages and return the manifest."""
    with Crawl(conf) as crawl:
        result = crawl.export_pages(folder, export_format, **options)
    names = {path.name for path in folder.iterdir()} - {"export.json"}
    assert result.files == len(names)
    assert not any(name.startswith(".") for name in names)
    manifest: dict[str, Any] = json.loads((folder / "export.json").read_bytes())
    return manifest


def test_responses_of_table_are_records(pages: Configuration, tmp_path: Path) -> None:
    manifest = export(pages, tmp_path / "out", "warc", all_rows=True)
    assert manifest["skipped"] == {"no_response": 3}
    first, *records = read_folder(tmp_path / "out")
    assert first.kind == "warcinfo"
    found = {record.url.removeprefix("http://a.test/"): record for record in records}
    assert {name: (each.kind, each.status, each.content) for name, each in found.items()} == {
        "": ("response", "200", BODY),
        "again": ("revisit", "200", b""),
        "cut": ("response", "200", b"abc"),
        "empty": ("response", "200", b""),
        "file:///tmp/x.txt": ("resource", "", b"file"),
        "same": ("response", "200", b"old"),
        "moved": ("response", "301", b""),
        "gone": ("response", "410", b""),
        "busy": ("response", "503", b""),
    }
    assert found[""].http == {
        "Content-Type": "text/html; charset=x", "X-Name": "\xe9", "X-Crawler-Content-Length": "7",
        "Content-Length": str(len(BODY)),
    }  # fmt: skip
    assert found[""].warc["WARC-Date"] == "2026-11-26T12:00:00.000Z"
    assert {name: each.warc["WARC-Truncated"] for name, each in found.items() if "WARC-Truncated" in each.warc} == {
        "cut": "length",
        "gone": "unspecified",
        "busy": "unspecified",
    }
    again = found["again"]
    assert again.http["X-Crawler-Content-Encoding"] == "gzip"
    assert again.warc["WARC-Refers-To-Target-URI"] == "http://a.test/"
    assert again.warc["WARC-Payload-Digest"] == found[""].warc["WARC-Payload-Digest"]
    assert found["same"].http["Content-Type"] == "text/plain"
    assert found["file:///tmp/x.txt"].warc["Content-Type"] == "text/plain"


def test_archive_has_only_fetched_pages_unless_told_otherwise(pages: Configuration, tmp_path: Path) -> None:
    manifest = export(pages, tmp_path / "out", "warc")
    assert (manifest["pages"], manifest["skipped"]) == (6, {"no_response": 1, "not_fetched": 5})
    assert {each.status for each in read_folder(tmp_path / "out")} == {"", "200"}


def test_files_are_bounded_and_index_finds_every_record(
    pages: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdxj_index, "RUN_BYTES", 500)
    pages.set("fetcher.warc.size", 1000)
    export(pages, tmp_path / "out", "cdxj", all_rows=True)
    files = sorted((tmp_path / "out").glob("*.warc.gz"))
    assert len(files) > 2
    assert [read_warc_bytes(path.read_bytes())[0].kind for path in files] == ["warcinfo"] * len(files)
    lines = (tmp_path / "out" / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    assert len(lines) == 9
    for line in lines:
        key, stamp, text = line.decode().split(" ", 2)
        values = json.loads(text)
        data = (tmp_path / "out" / values["filename"]).read_bytes()
        (record,) = read_warc_bytes(data[int(values["offset"]) :][: int(values["length"])])
        assert (record.url, key, stamp) == (values["url"], to_urlkey(record.url), "20261126120000")
        assert values["digest"] == record.warc["WARC-Payload-Digest"]
        assert values["status"] == (record.status or "200")
        assert (values["mime"] == "warc/revisit") == (record.kind == "revisit")


def test_wacz_holds_package_pages_index_and_archive(
    pages: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdxj_index, "BLOCK_LINES", 2)
    pages.set("fetcher.warc.size", 1000)
    export(pages, tmp_path / "out", "wacz", all_rows=True)
    (path,) = (tmp_path / "out").glob("*.wacz")
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        package = json.loads(file.read("datapackage.json"))
        digest = json.loads(file.read("datapackage-digest.json"))
        assert digest["hash"] == f"sha256:{sha256(file.read('datapackage.json')).hexdigest()}"
        resources = {each["path"]: each for each in package["resources"]}
        assert {*resources} == {*file.namelist()} - {"datapackage.json", "datapackage-digest.json"}
        for name, about in resources.items():
            data = file.read(name)
            assert (about["bytes"], about["hash"]) == (len(data), f"sha256:{sha256(data).hexdigest()}")
            if name.startswith("archive/"):
                assert file.getinfo(name).compress_type == zipfile.ZIP_STORED
        archives = [file.read(name) for name in resources if name.startswith("archive/")]
        records = [each for data in archives for each in read_warc_bytes(data)]
        assert len([each for each in records if each.kind != "warcinfo"]) == 9
        head, *listed = map(json.loads, file.read("pages/pages.jsonl").splitlines())
        assert head["format"] == "json-pages-1.0"
        assert {each["url"]: (each.get("title"), each.get("text")) for each in listed} == {
            "http://a.test/": ("One", "one two"),
            **{f"http://a.test/{name}": (None, None) for name in ("again", "cut", "empty", "same")},
            "file:///tmp/x.txt": (None, None),
        }
        blocks = file.read("indexes/index.cdx.gz")
        meta, *entries = file.read("indexes/index.idx").decode().splitlines()
        assert json.loads(meta.removeprefix("!meta 0 ")) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
        lines: list[bytes] = []
        for entry in entries:
            key, stamp, text = entry.split(" ", 2)
            about = json.loads(text)
            block = blocks[about["offset"] :][: about["length"]]
            assert about["digest"] == f"sha256:{sha256(block).hexdigest()}"
            more = gzip.decompress(block).splitlines()
            assert more[0].startswith(f"{key} {stamp} {{".encode())
            lines += more
        assert len(lines) == 9
        assert lines == sorted(lines)
        assert {json.loads(line.split(b" ", 2)[2])["filename"] for line in lines} <= {
            name.partition("/")[2] for name in resources
        }


@pytest.mark.parametrize("export_format", ["warc", "cdxj", "wacz"])
def test_archive_without_pages_is_whole(conf: Configuration, tmp_path: Path, export_format: str) -> None:
    rows.put(conf, {"http://a.test/new": {}})
    assert export(conf, tmp_path / "out", export_format)["pages"] == 0
    if export_format != "wacz":
        assert [each.kind for each in read_folder(tmp_path / "out")] == ["warcinfo"]


def test_every_page_of_recorded_crawl_is_in_archive(conf: Configuration, recording: Path, tmp_path: Path) -> None:
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    conf.set("mapreduce.job.maps", 3)
    export(conf, tmp_path / "out", "warc")
    found = {each.url: each for each in read_folder(tmp_path / "out") if each.kind != "warcinfo"}
    expected = {
        url: page.content
        for url, page in rows.pages(conf).items()
        if page.status in (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED) and page.content is not None
    }
    assert found.keys() == expected.keys()
    for url, record in found.items():
        if record.kind == "revisit":
            record = found[record.warc["WARC-Refers-To-Target-URI"]]
        assert record.content == expected[url]


def test_hostile_rows_cannot_end_a_header_line(conf: Configuration, tmp_path: Path) -> None:
    rows.put(conf, {"http://a.test/": {"status": CrawlStatus.FETCHED}})
    cells = {
        b"f": {b"st": (b"\0\0\0\x02", 1), b"ts": ((NOON).to_bytes(8), 1), b"prot": (b"\x02\x00\x00", 1)}
        | {b"cnt": (b"x\r\n\r\nWARC/1.1\r\n", 1), b"typ": (b"a\r\nWARC-Type: x", 1)},
        b"mk": {b"_ftcmrk_": (b"1", 1)},
        b"h": {b"X: y\r\nZ": (b"1\r\n\r\nbody", 1), b"\xff": (b"\xff\n", 1), "Ж".encode(): ("Ж".encode(), 1)},
    }
    with open_store(conf, WebPage).batch() as batch:
        batch.put_cells("test.bad:http/a b\r\nWARC-Type: c\xe9?\n", cells)
        batch.put_cells("no url at all", cells)
    for export_format in ("warc", "wacz"):
        export(conf, tmp_path / export_format, export_format)
    for record in read_folder(tmp_path / "warc"):
        assert record.kind != "x"
        assert "WARC-Type: c" not in record.warc
        if record.kind != "warcinfo":
            assert record.url == "http://bad.test/a%20b%0D%0AWARC-Type:%20c%C3%A9?%0A"
            assert record.content == b"x\r\n\r\nWARC/1.1\r\n"
            assert "Z" not in record.http


def test_archive_has_no_fields(conf: Configuration, tmp_path: Path) -> None:
    rows.put(conf, {"http://a.test/new": {}})
    with pytest.raises(UsageError, match="leave out -fields"):
        export(conf, tmp_path / "out", "warc", fields=("url",))


def test_second_export_into_the_same_new_folder_is_rejected(
    pages: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find no folder; one creates it."""

    def run_two(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(export_job, "run_job", run_job)
        with pytest.raises(InputError, match="is in use"):
            export(pages, tmp_path / "out", "jsonl")
        return run_job(*args, **options)

    monkeypatch.setattr(export_job, "run_job", run_two)
    (tmp_path / "out").mkdir()
    assert export(pages, tmp_path / "out", "warc")["pages"] == 6


@pytest.mark.parametrize("export_format", ["warc", "cdxj", "wacz"])
def test_full_disk_leaves_no_partial_archive(
    pages: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export_format: str
) -> None:
    made = [make_record] * 2

    def make_two_records(*args: Any) -> bytes:
        if not made:
            raise OSError(errno.ENOSPC, "No space left on device")
        return made.pop()(*args)

    monkeypatch.setattr(archive_writer, "make_record", make_two_records)
    with pytest.raises(StoreError, match="no space is left"):
        export(pages, tmp_path / "out", export_format)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.org/A/B/?b=2&a=1&B=1", "org,example)/a/b?a=1&b=1&b=2"),
        ("https://example.org:443", "org,example)/"),
        ("https://www2.example.org:8443/x", "org,example:8443)/x"),
        ("http://example.org/a//b/./../c", "org,example)/a/c"),
        ("http://user:word@example.org/%7Ex?", "org,example)/~x"),
        ("http://example.org/%C3%84", "org,example)/%c3%84"),
        ("http://[::1]:81/", "[::1]:81)/"),
        ("no url", "no%20url"),
        ("", "-"),
    ],
)
def test_key_of_index(url: str, key: str) -> None:
    assert to_urlkey(url) == key


def test_lines_are_sorted_by_bytes_whatever_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdxj_index, "RUN_BYTES", 1000)
    lines = [f"{number * 7919 % 1000} x\n".encode() for number in range(500)]
    sorter = LineSorter(tmp_path)
    for line in lines:
        sorter.add(line)
    assert len([*tmp_path.iterdir()]) > 10
    assert [*sorter] == sorted(lines)
    sorter.close()
    assert [*tmp_path.iterdir()] == []
