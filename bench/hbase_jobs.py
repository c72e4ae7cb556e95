"""hbase-jobs: jobs over a table in HBase, with the servers' CPU: ROWS seeds, then a batch of 1,000 of them.

The first lines have the targets of the peer's measurements (100,000 rows). The lines of the batch, at 20,000 and at
500,000 rows, show that the cost of fetch, parse and updatedb depends on the batch; only generate reads every row.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.inject import write_seeds
from bench.measuring import Measurement, Nutch
from bench.services import service
from bench.updatedb import BATCH, build
from nutch2py.conf.configuration import Configuration

ROWS = (20_000, 100_000, 500_000)
_BATCH_ROWS = 1_000
_AIMS = {"inject": 27.0, "generate 10,000": 20.0, "updatedb 10,000": 24.0}
_PEER_ROWS = 100_000


class _Pages(BaseHTTPRequestHandler):
    """One page for every path, with ten links."""

    protocol_version = "HTTP/1.1"
    body = b"<html><head><title>A page</title></head><body>" + b"".join(
        b'<a href="/links/%d.html">page %d of ten</a> some words between the links ' % (n, n) for n in range(10)
    )

    def do_GET(self) -> None:
        is_page = self.path != "/robots.txt"
        body = self.body if is_page else b""
        self.send_response_only(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Disable the log."""


@contextmanager
def _server() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure inject of ``rows``, and the jobs of a batch; at 100,000 rows also the peer's work."""
    found: list[Measurement] = []
    with service("hbase", "jobs", folder / "hbase") as hbase, _server() as port:
        nutch = Nutch(folder, runner, **{"storage.data.store": hbase.address})

        def job(name: str, records: int, *words: str) -> None:
            cost, servers = hbase.cost_of(lambda: nutch(*words))
            aim = _AIMS.get(name) if rows == _PEER_ROWS else None
            found.append(Measurement(f"{name} of {rows:,} rows", records, cost, "rows", aim, servers))

        seeds = write_seeds(rows, folder)
        hosts = sorted(set(re.findall(r"//([^/]+)", seeds.read_text(encoding="ascii"))))
        (folder / "hosts").write_text("".join(f"127.0.0.1 {host}\n" for host in hosts), encoding="ascii")
        text = seeds.read_text(encoding="ascii")
        local = folder / "local.txt"
        local.write_text(re.sub(r"(//[^/]+)", rf"\1:{port}", text), encoding="ascii")
        job("inject", rows, "inject", str(local))
        if rows == _PEER_ROWS:
            job("generate 10,000", rows, "generate", "-topN", "10000", "-batchId", "first")
            nutch("updatedb", "first")
        settings = ["-D", f"http.hosts.file={folder / 'hosts'}", "-D", "http.filter.ipaddress.exclude="]
        settings += ["-D", "http.agent.name=bench", "-D", "fetcher.server.delay=0"]
        job("generate 1,000", rows, "generate", "-topN", str(_BATCH_ROWS), "-batchId", "second")
        job("fetch 1,000", _BATCH_ROWS, "fetch", "second", *settings)
        job("parse 1,000", _BATCH_ROWS, "parse", "second")
        job("updatedb 1,000", _BATCH_ROWS, "updatedb", "second")
        if rows == _PEER_ROWS:
            conf = Configuration.load(overrides={"storage.data.store": hbase.address, "storage.crawl.id": "peer"})
            build(conf, 10_000)
            job("updatedb 10,000", 10_000, "updatedb", BATCH, "-crawlId", "peer")
    return found
