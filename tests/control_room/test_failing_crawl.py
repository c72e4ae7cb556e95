"""A failing crawl in the control room: the page of a URL shows the cause and the remedy."""

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
    """A site with a robots.txt that disallows everything."""

    def do_GET(self) -> None:
        """Send robots.txt, or a page that no crawler should request."""
        body = b"User-agent: *\nDisallow: /\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


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
    unreachable = "http://127.0.0.1:9/"
    with closed_site() as denied, Crawl(conf, {**SETTINGS, "http.timeout": "5000"}) as crawl:
        crawl.inject([denied, unreachable])
        batch = crawl.generate().batch_id
        crawl.fetch(batch)
        crawl.parse(batch)
        crawl.updatedb(batch)
    with running(conf) as server:
        client = Client(server)
        shown = client.get(f"/crawl/page?url={quote(denied, safe='')}")
        assert "Denied by robots.txt (ROBOTS_DENIED)" in shown
        assert "http.agent.name" in shown
        shown = client.get(f"/crawl/page?url={quote(unreachable, safe='')}")
        assert "Fetch failed (EXCEPTION): " in shown
        assert "nutch2py doctor checks DNS, addresses and limits" in shown
        assert "db.fetch.retry.max" in shown
