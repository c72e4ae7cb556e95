"""A site of Chinese pages that declare no encoding, neither in a header nor in themselves: its words are found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from nutch2py import Crawl
from tests.jobs.crawl import properties

# path -> encoding, title, text, the word that only this page has, the next page
PAGES = {
    "/": ("gbk", "图书馆", "市图书馆今天开放，读者可以借阅各种书籍和报纸，也可以参观历史展览。", "借阅", "/b5"),
    "/b5": ("big5", "氣象預報", "明天北部地區多雲時晴，南部有陣雨，出門請記得攜帶雨傘並注意安全。", "攜帶", "/gb"),
    "/gb": (
        "gb18030",
        "烹饪入门",
        "先把豆腐切成小块，加入酱油和葱花，用小火煮十分钟就可以吃了。",
        "豆腐",
        "/火车",
    ),
    "/火车": (
        "utf-8",
        "火车时刻",
        "从北京到上海的高速列车每天有四十多班，最快只需要四个半小时。",
        "列车",
        "/short",
    ),
    "/short": ("gbk", "短", "长颈鹿吃树叶。", "长颈鹿", "/"),
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = unquote(self.path)
        encoding, title, text, _, following = PAGES.get(path, ("ascii", "", "", "", ""))
        link = f"<a href='{following}'>{title}</a>"
        body = f"<html><head><title>{title}</title></head><body><p>{text}</p>{link}</body></html>"
        raw = body.encode(encoding)
        self.send_response(200 if path in PAGES else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_words_of_undeclared_chinese_pages_are_found(tmp_path: Path, address: str) -> None:
    with Crawl(f"embedded:{tmp_path / 'crawldata'}", properties()) as crawl:
        crawl.inject([f"{address}/"])
        while (batch := crawl.generate()).urls:
            crawl.fetch(batch.batch_id)
            crawl.parse(batch.batch_id)
            crawl.updatedb(batch.batch_id)
            crawl.index(batch.batch_id)
        for path, (encoding, title, text, word, _) in PAGES.items():
            found = crawl.search(word)
            assert [unquote(hit.url) for hit in found.hits] == [address + path], (word, encoding)
            assert found.hits[0].fields["lang"] == "zh"
            page = crawl.page(found.hits[0].url)
            assert page is not None
            assert (page.title, (page.text or "").startswith(f"{title} {text}")) == (title, True)
