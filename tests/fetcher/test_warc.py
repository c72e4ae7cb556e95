"""WARC files, read back with warcio."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.output.warc import WarcFileWriter, check_warc_dir
from nutch2py.jobs.fetch.fetch_job import fetch
from tests.fetcher.conftest import BATCH, Crawl, item
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>hello</body></html>"


def records(folder: Path) -> list[tuple[str, str, dict[str, str], Any, bytes]]:
    """Return type, URL, WARC headers, HTTP headers and payload of every record."""
    found = []
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                headers = dict(record.rec_headers.headers)
                url = headers.get("WARC-Target-URI", "")
                found.append((record.rec_type, url, headers, record.http_headers, record.content_stream().read()))
    return found


def of(found: list[Any], kind: str, url: str) -> Any:
    (record,) = [each for each in found if each[:2] == (kind, url)]
    return record


def test_request_and_response_are_recorded(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    site.on(
        "/p", Reply(body=gzip.compress(PAGE), headers=[("Content-Encoding", "gzip"), ("X-Two", "a"), ("X-Two", "b")])
    )
    site.on("/gone", Reply(410, b"gone", reason="Gone"))
    crawl(site.url("/p"), site.url("/gone"), "http://127.0.0.1:1/", fetcher_warc_dir=str(tmp_path))
    found = records(tmp_path)
    assert [kind for kind, *_ in found].count("warcinfo") == 1
    assert b"software: nutch2py/" in found[0][4]
    assert {url for _, url, *_ in found} == {"", site.url("/p"), site.url("/gone")}
    _, _, warc, http, payload = of(found, "response", site.url("/p"))
    assert payload == PAGE
    assert http.get_statuscode() == "200"
    assert http.get_header("Content-Length") == str(len(PAGE))
    assert http.get_header("X-Crawler-Content-Encoding") == "gzip"
    assert [value for name, value in http.headers if name == "X-Two"] == ["a", "b"]
    assert warc["WARC-IP-Address"] == "127.0.0.1"
    _, _, request, http, _ = of(found, "request", site.url("/p"))
    assert http.statusline == "/p HTTP/1.1"
    assert http.protocol == "GET"
    assert http.get_header("User-Agent").startswith("probe")
    assert request["WARC-Concurrent-To"] == warc["WARC-Record-ID"]
    assert f"nutch.batchId: {BATCH}\r\n".encode() in of(found, "metadata", site.url("/p"))[4]
    gone = of(found, "response", site.url("/gone"))
    assert (gone[3].get_statuscode(), gone[4]) == ("410", b"gone")


def test_each_fetch_of_process_has_own_files(
    site: ScriptedSite, crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also within a second, and for objects at the same memory address."""
    monkeypatch.setattr("nutch2py.fetcher.output.warc.id", lambda _: 7, raising=False)
    monkeypatch.setattr("nutch2py.fetcher.output.warc.time.strftime", lambda *_: "20260101000000")
    site.on("/p", Reply(body=PAGE))
    for _ in range(3):
        crawl(site.url("/p"), fetcher_warc_dir=str(tmp_path))
    assert len([*tmp_path.glob("*.warc.gz")]) == 3


def test_unchanged_page_is_revisit_record(site: ScriptedSite, fetch_conf: Configuration, tmp_path: Path) -> None:
    site.on("/same", Reply(body=PAGE))
    site.on("/copy", Reply(body=PAGE))
    site.on("/known", Reply(304, content_type=None))
    fetch_conf.set("fetcher.warc.dir", str(tmp_path))
    known = item(site.url("/known"), modified_time=1_600_000_000_000)
    items = [item(site.url("/same")), item(site.url("/copy")), known]
    Fetcher(fetch_conf, 1, log=lambda _: None).run(iter(items), lambda _: None)
    found = records(tmp_path)
    copy = of(found, "revisit", site.url("/copy"))
    assert copy[2]["WARC-Profile"].endswith("/identical-payload-digest")
    assert copy[2]["WARC-Refers-To-Target-URI"] == site.url("/same")
    assert copy[2]["WARC-Refers-To-Date"] == of(found, "response", site.url("/same"))[2]["WARC-Date"]
    unchanged = of(found, "revisit", site.url("/known"))
    assert unchanged[2]["WARC-Profile"].endswith("/server-not-modified")
    assert unchanged[3].get_statuscode() == "304"


def test_truncated_response_is_marked(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    site.on("/long", Reply(body=b"x" * 5000))
    crawl(site.url("/long"), http_content_limit="100", fetcher_warc_dir=str(tmp_path))
    _, _, warc, _, payload = of(records(tmp_path), "response", site.url("/long"))
    assert (warc["WARC-Truncated"], payload) == ("length", b"x" * 100)


def test_odd_responses_are_recorded(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    site.on("/odd", Reply(raw=b"HTTP/1.1 200 OK\r\nnonsense\r\nX: a\x01\r\nY: \xe9\r\n\r\n" + PAGE))
    crawl(site.url("/odd"), fetcher_warc_dir=str(tmp_path))
    assert of(records(tmp_path), "response", site.url("/odd"))[4] == PAGE


def test_files_rotate_at_size_and_are_valid(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    for number in range(6):
        site.on(f"/{number}", Reply(body=bytes(range(256)) * 100 + b"%d" % number))
    urls = [site.url(f"/{number}") for number in range(6)]
    crawl(*urls, fetcher_warc_dir=str(tmp_path / "deep" / "folder"), fetcher_warc_size="1000")
    files = sorted((tmp_path / "deep" / "folder").iterdir())
    assert len(files) == 6
    assert all(path.name.endswith(".warc.gz") for path in files)
    checker = Checker(type("Arguments", (), {"inputs": [str(path) for path in files], "verbose": False}))
    checker.process_all()
    assert checker.exit_value == 0


def test_other_protocols_are_resource_records(fetch_conf: Configuration, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes(b"hello")
    fetch_conf.set("plugin.includes", "protocol-file")
    fetch_conf.set("fetcher.warc.dir", str(tmp_path / "warc"))
    url = f"file:{tmp_path}/f.txt"
    done: list[FetchItem] = []
    Fetcher(fetch_conf, 1, log=lambda _: None).run(iter([item(url)]), done.append)
    assert of(records(tmp_path / "warc"), "resource", url)[4] == b"hello"


def test_unwritable_folder_ends_fetch(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    site.on("/p", Reply(body=PAGE))
    with pytest.raises(ConfigurationError, match="WARC files cannot be written"):
        crawl(site.url("/p"), fetcher_warc_dir=str(tmp_path / "file"))


def test_unwritable_folder_is_detected_before_first_page(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "closed").mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in str(path) and may(path, mode))
    for folder, reason in (
        ("file", "file is not a directory"),
        ("file/in/it", "file is not a directory"),
        ("closed", "cannot write to .*closed"),
        ("closed/in/it", "cannot write to .*closed"),
    ):
        conf.set("fetcher.warc.dir", str(tmp_path / folder))
        with pytest.raises(ConfigurationError, match=f"WARC files cannot be written to .*{reason}"):
            fetch(conf, "batch")  # which is not looked for before
    check_warc_dir(str(tmp_path / "can" / "be" / "made"))
    assert not (tmp_path / "can").exists()


def test_nothing_fetched_leaves_no_file(fetch_conf: Configuration, tmp_path: Path) -> None:
    WarcFileWriter(fetch_conf, str(tmp_path / "warc")).close()
    assert not (tmp_path / "warc").exists()


ODD = {
    "reason": (b"HTTP/1.1 200 Trouv\xe9", b"X-Plain: a"),
    "reason-utf-8": (b"HTTP/1.1 200 \xe6\x89\xbe\xe5\x88\xb0", b"X-Plain: a"),
    "reason-nbsp": (b"HTTP/1.1 200 OK\xa0", b"X-Plain: a"),
    "reason-none": (b"HTTP/1.1 200", b"X-Plain: a"),
    "name": (b"HTTP/1.1 200 OK", b"X-N\xe4me: a"),
    "name-utf-8": (b"HTTP/1.1 200 OK", "X-中: a".encode()),
    "value": (b"HTTP/1.1 200 OK", b"X-Value: caf\xe9 \xff\x80"),
    "value-utf-8": (b"HTTP/1.1 200 OK", 'Content-Disposition: attachment; filename="中.pdf"'.encode()),
    "value-escaped": (b"HTTP/1.1 200 OK", b"X-Value: %E9 \xe9"),
    "value-controls": (b"HTTP/1.1 200 OK", b"X-Value: a\x01\x7f\x85b"),
    "value-long": (b"HTTP/1.1 200 OK", b"X-Value: " + b"\xe9" * 50_000),
    "value-empty": (b"HTTP/1.1 200 OK", b"X-Value: "),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_header_bytes_are_preserved(site: ScriptedSite, crawl: Crawl, tmp_path: Path, name: str) -> None:
    status_line, line = ODD[name]
    head = status_line + b"\r\nContent-Type: text/html\r\n" + line + b"\r\n"
    site.on("/odd", Reply(raw=head + b"\r\n" + PAGE))
    site.on("/next", Reply(body=PAGE + b"next"))
    crawl(site.url("/odd"), site.url("/next"), threads=1, fetcher_warc_dir=str(tmp_path))
    found = records(tmp_path)  # with their digests and lengths
    assert of(found, "response", site.url("/odd"))[4] == PAGE
    assert of(found, "response", site.url("/next"))[4] == PAGE + b"next"
    (path,) = tmp_path.glob("*.warc.gz")
    expected = head + f"Content-Length: {len(PAGE)}\r\n\r\n".encode() + PAGE
    assert expected in gzip.decompress(path.read_bytes())
