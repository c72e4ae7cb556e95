"""A sick crawl as the control room tells of it: each cause is named on the page of a URL, with what to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from nutch2py import Crawl
from tests.jobs.crawl import SETTINGS
from tests.rest.conftest import Client, running, settings


class _Closed(BaseHTTPRequestHandler):
    """A site whose robots.txt lets nobody in."""

    def do_GET(self) -> None:
        """Answer with rules, or a page that nobody is to ask for."""
        body = b"User-agent: *\nDisallow: /\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def closed_site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Closed) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_page_view_explains_failed_fetch(tmp_path: Path) -> None:
    conf = settings(tmp_path)
    refused = "http://127.0.0.1:9/"
    with closed_site() as denied, Crawl(conf, {**SETTINGS, "http.timeout": "5000"}) as crawl:
        crawl.inject([denied, refused])
        batch = crawl.generate().batch_id
        crawl.fetch(batch)
        crawl.parse(batch)
        crawl.updatedb(batch)
    with running(conf) as server:
        client = Client(server)
        told = client.get(f"/crawl/page?url={quote(denied, safe='')}")
        assert "Denied by robots.txt (ROBOTS_DENIED)" in told
        assert "http.agent.name" in told
        told = client.get(f"/crawl/page?url={quote(refused, safe='')}")
        assert "Fetch failed (EXCEPTION): " in told
        assert "nutch2py doctor checks DNS, addresses and limits" in told
        assert "db.fetch.retry.max" in told
