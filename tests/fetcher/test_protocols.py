"""Protocols besides HTTP: local files, FTP, and unsupported ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader.download_handler import PycurlDownloadHandler
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.protocols.ftp_listing import parse_ftp_listing
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.fetcher.conftest import item, loopback
from tests.site.ftp import FtpSite


@pytest.fixture
def local(fetch_conf: Configuration) -> Configuration:
    fetch_conf.set("plugin.includes", "protocol-(http|file|ftp)|parse-html|urlnormalizer-(pass|regex|basic)")
    return fetch_conf


def fetched(conf: Configuration, *urls: str, **cells: object) -> list[WebPage]:
    done: dict[str, WebPage] = {}
    items: list[FetchItem] = [item(url, **cells) for url in urls]
    Fetcher(conf, 2, log=lambda _: None).run(iter(items), lambda found: done.update({found.url: found.page}))
    return [done[url] for url in urls]


def code(page: WebPage) -> int:
    assert page.protocol_status is not None
    return page.protocol_status.code


def test_file_protocol_fetches_file(local: Configuration, tmp_path: Path) -> None:
    (tmp_path / "a b%.txt").write_bytes(b"hello")
    (page,) = fetched(local, f"file:{tmp_path}/a%20b%25.txt")
    assert (page.status, page.content, page.content_type) == (CrawlStatus.FETCHED, b"hello", "text/plain")
    headers = dict(page.headers)
    assert headers["Content-Length"] == "5"
    assert headers["Last-Modified"].endswith("GMT")


def test_file_protocol_truncates_at_limit(local: Configuration, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 200_000)
    local.set("http.content.limit", "10")
    assert len(fetched(local, f"file://{tmp_path}/big")[0].content or b"") == 65_536
    local.set("file.content.limit", "-1")
    assert len(fetched(local, f"file://{tmp_path}/big")[0].content or b"") == 200_000


def test_file_protocol_folder_is_page_of_links(local: Configuration, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    for name in ("one.txt", "two & <three>.html", "x:y", "ü"):
        (folder / name).write_bytes(b"x")
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to("missing")
    local.set("fetcher.parse", "true")
    local.set("db.max.outlinks.per.page", "-1")
    (page,) = fetched(local, f"file:{folder}/")
    names = {"one.txt", "two%20&%20%3Cthree%3E.html", "x:y", "%C3%BC", "sub/"}
    parent = f"file:{tmp_path}/"
    assert {url.replace("%26", "&").replace("%3A", ":") for url in page.outlinks} == {
        parent,
        *(f"file:{folder}/{name}" for name in names),
    }
    assert page.title == f"Index of {folder}"
    local.set("file.crawl.parent", "false")
    assert parent not in fetched(local, f"file:{folder}/")[0].outlinks


def test_file_protocol_symlink_and_folder_without_slash_redirect(local: Configuration, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    linked, bare = fetched(local, f"file:{tmp_path}/link/f", f"file:{tmp_path}/real")
    assert (code(linked), list(linked.outlinks)) == (Code.MOVED, [f"file:{tmp_path}/real/f"])
    assert (code(bare), list(bare.outlinks)) == (Code.MOVED, [f"file:{tmp_path}/real/"])
    local.set("file.crawl.redirect_noncanonical", "false")
    assert fetched(local, f"file:{tmp_path}/link/f")[0].content == b"x"


def test_file_protocol_missing_unreadable_or_special_file_has_status(local: Configuration, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pages = fetched(local, f"file:{tmp_path}/missing", f"file:{tmp_path}/pipe", f"file:{tmp_path}/a%00b")
    assert [code(page) for page in pages] == [Code.NOTFOUND, Code.EXCEPTION, Code.NOTFOUND]


def test_file_protocol_unchanged_file_is_not_modified(local: Configuration, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    modified = int(path.stat().st_mtime) * 1000
    (page,) = fetched(local, f"file:{path}", modified_time=modified)
    assert (code(page), page.content) == (Code.NOTMODIFIED, None)
    (page,) = fetched(local, f"file:{path}", modified_time=modified - 1000)
    assert page.content == b"x"


@pytest.mark.parametrize("url", ["file:/etc/hostname", "ftp://a.test/x", "mailto:me@a.test"])
def test_other_protocols_are_rejected(fetch_conf: Configuration, url: str) -> None:
    (page,) = fetched(fetch_conf, url)
    is_disabled = not url.startswith("mailto:")  # by our configuration: nothing is wrong with the page
    assert (page.status, page.content) == (CrawlStatus.UNFETCHED if is_disabled else CrawlStatus.RETRY, None)
    assert page.protocol_status is not None
    protocol = url.partition(":")[0]
    assert page.protocol_status.code == Code.PROTO_NOT_FOUND
    assert page.protocol_status.args[0].startswith(f"no protocol plug-in for {protocol}")


@pytest.fixture
def ftp() -> Iterator[FtpSite]:
    files = {
        "/robots.txt": b"User-agent: *\nDisallow: /no\n",
        "/a.txt": b"hello",
        "/sub/big": b"x" * 200_000,
        "/no": b"no",
    }
    with FtpSite(files) as running:
        yield running


def test_ftp_fetches_files(local: Configuration, ftp: FtpSite) -> None:
    text, big, missing, denied = fetched(local, *(ftp.url(path) for path in ("/a.txt", "/sub/big", "/missing", "/no")))
    assert (text.status, text.content, text.content_type) == (CrawlStatus.FETCHED, b"hello", "text/plain")
    assert len(big.content or b"") == 65_536
    assert (code(missing), code(denied)) == (Code.NOTFOUND, Code.ROBOTS_DENIED)
    assert "/no" not in ftp.retrieved
    assert ftp.logins == {("anonymous", "anonymous@example.com")}


def test_ftp_fetches_folders(local: Configuration, ftp: FtpSite) -> None:
    local.set("fetcher.parse", "true")
    (root,) = fetched(local, ftp.url("/"))
    assert set(root.outlinks) == {ftp.url(path) for path in ("/robots.txt", "/a.txt", "/sub/", "/no")}


def test_ftp_control_and_data_connections_pass_address_filter(local: Configuration, ftp: FtpSite) -> None:
    local.set("http.filter.ipaddress.exclude", "loopback")
    (page,) = fetched(local, ftp.url("/a.txt"))
    assert page.status == CrawlStatus.UNFETCHED
    assert ftp.logins == set()


def test_ftp_listings_are_parsed() -> None:
    text = (
        "total 3\r\n"
        "drwxr-xr-x   2 ftp ftp     4096 Jan 01 12:00 .\r\n"
        "drwxr-xr-x   2 ftp ftp     4096 Jan 01 12:00 a folder\r\n"
        "-rw-r--r--   1 ftp ftp       17 Jan 01  2020 file.txt\r\n"
        "lrwxrwxrwx   1 ftp ftp        4 Jan 01 12:00 link -> file.txt\r\n"
        "01-02-20  03:04PM       <DIR>          dos folder\r\n"
        "01-02-2020  03:04PM                 12 dos.txt\r\n"
        "-rw-r--r--   1 ftp ftp       17 Jan 01  2020 ../evil\r\n"
    )
    assert [(entry.name, entry.is_dir) for entry in parse_ftp_listing(text)] == [
        ("a folder", True),
        ("file.txt", False),
        ("link", False),
        ("dos folder", True),
        ("dos.txt", False),
    ]


def test_unavailable_protocol_reports_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy skips a handler that fails to start, and only logs it."""

    def fail(*_: object) -> None:
        raise OSError("no libcurl here")

    monkeypatch.setattr(PycurlDownloadHandler, "__init__", fail)
    (page,) = fetched(loopback(tmp_path), "http://a.test:9/")
    assert page.protocol_status is not None
    assert page.protocol_status.args[0].endswith("Unsupported URL scheme 'http': no libcurl here")
