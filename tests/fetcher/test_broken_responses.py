"""Every broken response ends with a status in the row, and the next page of the server is fetched."""

from __future__ import annotations

import gzip
import zlib
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from typing import NamedTuple

import brotli
import pytest
import zstandard

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.protocols.response_body import BodyDecoder, parse_content_encoding
from nutch2py.records.webpage import CrawlStatus, MetadataKey
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.fetcher.conftest import item
from tests.process_memory import peak_megabytes
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>hello</body></html>"
LIMIT = 100_000
BOMB = 300_000_000  # bytes that each bomb would unpack to
MEMORY = 300  # MB
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


class Expected(NamedTuple):
    """Expected row of a page; ``length``: bytes of its content, None for no content."""

    status: CrawlStatus
    code: Code
    length: int | None


GOOD = Expected(CrawlStatus.FETCHED, Code.SUCCESS, len(PAGE))
CUT = Expected(CrawlStatus.FETCHED, Code.SUCCESS, LIMIT)
FAILED = Expected(CrawlStatus.RETRY, Code.EXCEPTION, None)


def packed(encoding: str, body: bytes) -> Reply:
    return Reply(body=body, headers=[("Content-Encoding", encoding)])


def bomb(encoding: str) -> Reply:
    """Return a response of some hundred kilobytes that decodes to 300 MB."""
    if encoding == "br":
        packer = brotli.Compressor(quality=1)
        parts = [packer.process(bytes(BOMB // 100)) for _ in range(100)]
        return packed(encoding, b"".join(parts) + packer.finish())
    if encoding == "zstd":
        stream = zstandard.ZstdCompressor().compressobj()
        return packed(encoding, b"".join(stream.compress(bytes(BOMB // 100)) for _ in range(100)) + stream.flush())
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    # after a full flush a block depends on nothing before it: one is compressed, and repeated
    first, block = (deflate.compress(bytes(BOMB // 100)) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return packed(encoding, first + block * 99)


def cases() -> dict[str, tuple[Reply, Expected]]:
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    return {
        "bomb-gzip": (bomb("gzip"), CUT),
        "bomb-deflate": (bomb("deflate"), CUT),
        "bomb-br": (bomb("br"), CUT),
        "bomb-zstd": (bomb("zstd"), CUT),
        "endless-body": (Reply(length=False, pieces=repeat(b"x" * 65_536)), CUT),
        "endless-chunks": (Reply(raw=chunked, pieces=repeat(b"1000\r\n" + b"x" * 4096 + b"\r\n")), CUT),
        "slow-body": (Reply(length=False, pieces=repeat(b"x"), pause=0.1), Expected(*CUT[:2], -1)),
        "slow-loris": (Reply(raw=HEAD, pieces=repeat(b"X: y\r\n"), pause=0.1), FAILED),
        "endless-headers": (Reply(raw=HEAD, pieces=repeat(b"X-Header: " + b"y" * 1000 + b"\r\n")), FAILED),
        "endless-header": (Reply(raw=HEAD + b"X: ", pieces=repeat(b"y" * 10_000)), FAILED),
        "endless-status-line": (Reply(raw=b"HTTP/1.1 200 ", pieces=repeat(b"y" * 10_000)), FAILED),
        "endless-interim": (Reply(raw=b"", pieces=repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)), FAILED),
        "silent": (Reply(hang=30), FAILED),
        "bad-chunk-length": (Reply(raw=chunked + b"zz\r\nhello\r\n0\r\n\r\n"), FAILED),
        "negative-chunk": (Reply(raw=chunked + b"-5\r\nhello\r\n0\r\n\r\n"), FAILED),
        "huge-chunk-length": (Reply(raw=chunked + b"ffffffffffffffffff\r\nhello"), FAILED),
        "cut-chunk": (Reply(raw=chunked + b"1f\r\nhello"), FAILED),
        "length-too-long": (Reply(raw=HEAD + b"Content-Length: 5000\r\n\r\n" + PAGE), GOOD),
        "length-too-short": (Reply(raw=HEAD + b"Content-Length: 5\r\n\r\n" + PAGE), Expected(*GOOD[:2], 5)),
        "length-negative": (Reply(raw=HEAD + b"Content-Length: -5\r\n\r\n" + PAGE), FAILED),
        "length-huge": (Reply(raw=HEAD + b"Content-Length: 99999999999999999999\r\n\r\n" + PAGE), GOOD),
        "lengths-differ": (Reply(raw=HEAD + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\n" + PAGE), None),
        "lie-gzip": (packed("gzip", PAGE), GOOD),
        "lie-deflate": (packed("deflate", PAGE), None),
        "lie-br": (packed("br", PAGE), GOOD),
        "lie-zstd": (packed("zstd", PAGE), GOOD),
        "packed-br": (packed("br", brotli.compress(PAGE)), GOOD),
        "packed-zstd": (packed("zstd", zstandard.ZstdCompressor().compress(PAGE)), GOOD),
        "http-0.9": (Reply(raw=PAGE), FAILED),
        "icy": (Reply(raw=b"ICY 200 OK\r\n\r\n" + PAGE), FAILED),
        "garbage": (Reply(raw=bytes(range(256)) * 10), FAILED),
        "bad-version": (Reply(raw=b"HTTP/9.9 200 OK\r\n\r\n" + PAGE), FAILED),
        "bad-status": (Reply(raw=b"HTTP/1.1 abc OK\r\n\r\n" + PAGE), FAILED),
        "status-of-two-digits": (Reply(raw=b"HTTP/1.1 20 OK\r\n\r\n" + PAGE), FAILED),
        "nothing": (Reply(raw=b""), FAILED),
        "reset": (Reply(reset=True), FAILED),
        "closed-in-status-line": (Reply(raw=b"HTTP/1.1 2"), FAILED),
        "closed-in-headers": (Reply(raw=HEAD + b"X-Ha"), FAILED),
        "closed-in-body": (Reply(raw=HEAD + b"Content-Length: 90\r\n\r\n<html>"), Expected(*GOOD[:2], 6)),
        "control-characters": (Reply(raw=HEAD + b"X: a\x01\x02\x7f\x1b[2J\r\n\r\n" + PAGE), GOOD),
        "nul-in-header": (Reply(raw=HEAD + b"X: a\0b\r\n\r\n" + PAGE), GOOD),
        "no-colon": (Reply(raw=HEAD + b"nonsense\r\n\r\n" + PAGE), GOOD),
        "huge-cookie": (Reply(raw=HEAD + b"Set-Cookie: a=" + b"y" * 90_000 + b"\r\n\r\n" + PAGE), GOOD),
        "many-cookies": (Reply(raw=HEAD + b"Set-Cookie: a=b\r\n" * 2000 + b"\r\n" + PAGE), FAILED),
        "redirect-to-nothing": (Reply(302, headers=[("Location", "")]), None),
        "redirect-unknown": (Reply(302, headers=[("Location", "nosuch:thing")]), FAILED),
        "redirect-endless": (Reply(302, headers=[("Location", "/" + "y" * 60_000)]), None),
    }  # fmt: skip


CASES = cases()


class Fetched(NamedTuple):
    """``rows``: status, code and length by name; ``addresses``: by name, of rows that have one; ``memory`` in MB."""

    rows: dict[str, tuple[int, int, int | None]]
    addresses: dict[str, bytes]
    memory: float


def fetch_all(url: str, names: list[str], way: str) -> Fetched:
    """Fetch the pages, and after each a good one of the same server."""
    overrides = {
        "http.agent.name": "probe",
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0",
        "fetcher.threads.per.queue": "4",
        "http.timeout": "1000",
        "http.time.limit": "2",
        "http.content.limit": str(LIMIT),
        "store.ip.address": "true",
        "fetcher.scrapy.whole": way,
    }
    rows, addresses = {}, {}

    def sink(done: FetchItem) -> None:
        page = done.page
        assert page.protocol_status is not None
        length = None if page.content is None else len(page.content)
        name = done.url.rpartition("/")[2]
        rows[name] = (page.status, page.protocol_status.code, length)
        if MetadataKey.IP in page.metadata:
            addresses[name] = page.metadata[MetadataKey.IP]

    paths = [path for name in names for path in (name, f"after-{name}")]
    fetcher = Fetcher(Configuration.load(overrides=overrides), 8, log=lambda _: None)
    fetcher.run((item(url + path) for path in paths), sink)
    return Fetched(rows, addresses, peak_megabytes())


@pytest.fixture(scope="module")
def fetched(way: str) -> Fetched:
    with ScriptedSite() as site:
        for name, (reply, _) in CASES.items():
            site.on(f"/{name}", reply)
            site.on(f"/after-{name}", Reply(body=PAGE))
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(fetch_all, site.url("/"), list(CASES), way).result(120)


@pytest.mark.parametrize("name", CASES)
def test_row_records_result_of_broken_response(fetched: Fetched, name: str) -> None:
    status, code, length = fetched.rows[name]
    assert fetched.rows[f"after-{name}"] == GOOD
    expected = CASES[name][1]
    if expected is None:  # good or not: it has a status
        assert (status, code) in {(2, 1), (34, 16), (4, 13)}
        return
    assert (status, code) == expected[:2]
    if expected.length == -1:  # what came in its time
        assert length is not None
        assert 0 < length < LIMIT
    else:
        assert length == expected.length


@pytest.mark.parametrize("name", CASES)
def test_row_records_server_address_for_any_response(fetched: Fetched, name: str) -> None:
    assert fetched.addresses[name] == fetched.addresses[f"after-{name}"] == b"127.0.0.1"


def test_memory_for_broken_responses_is_bounded(fetched: Fetched) -> None:
    print(f"{fetched.memory:.0f} MB, bombs of {BOMB / 1e6:.0f} MB each")
    assert fetched.memory < MEMORY


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress),
     ("zstd", zstandard.ZstdCompressor().compress)],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_chunked_body_of_any_chunk_size_is_read(encoding: str, pack: object, step: int) -> None:
    assert callable(pack)
    text = b"".join(b"%d," % number for number in range(30_000))
    data = pack(text)
    body = BodyDecoder(parse_content_encoding(encoding.upper()), -1)
    for start in range(0, len(data), step):
        assert body.feed(data[start : start + step])
    assert body.content() == text
    assert not body.truncated
