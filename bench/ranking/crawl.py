"""Crawls a collection with the commands of nutch2py, through a proxy that serves the sites."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from bench.ranking.collection import Collection, Render


class _Sites(BaseHTTPRequestHandler):
    """Serves the pages of the collection to requests of a proxy's client, which contain the whole URL."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    pages: ClassVar[dict[str, Render]] = {}

    def do_GET(self) -> None:
        """Send a page, or 404."""
        render = self.pages.get(unquote(self.path))
        body = render().encode() if render else b""
        self.send_response(200 if render else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Disable the log."""


@contextmanager
def served(pages: Mapping[str, Render]) -> Iterator[int]:
    """Serve the sites as a proxy on loopback; yield its port."""
    _Sites.pages = {unquote(url): render for url, render in pages.items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sites)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Crawl:
    """Runs commands of nutch2py with its own configuration and folder."""

    def __init__(self, work: Path, collection: Collection) -> None:
        self.work, self.conf, self.collection = work, work / "conf", collection
        self.conf.mkdir(parents=True, exist_ok=True)
        hosts = "|".join(re.escape(host) for host in sorted({urlsplit(url).netloc for url in collection.pages}))
        (self.conf / "regex-urlfilter.txt").write_text(f"-[?]\n+^http://({hosts})/\n")
        self.properties = {
            "storage.data.store": f"embedded:{work / 'crawldata'}",
            "http.agent.name": "ranking-bench",
            "http.content.limit": "-1",
            "http.filter.ipaddress.exclude": "",
            "http.proxy.host": "127.0.0.1",
            "fetcher.server.delay": "0",
            "fetcher.threads.per.queue": "4",
            "fetcher.server.min.delay": "0",
            "db.max.outlinks.per.page": "-1",
            "plugin.includes": "protocol-http|urlfilter-regex|parse-(html|text)|index-(basic|anchor|more|pagerank)|"
            "indexer-embedded|urlnormalizer-(pass|regex|basic)|scoring-opic",
        }

    def run(self, *arguments: str, check: bool = True, properties: Mapping[str, str] | None = None) -> str:
        """Run a command and return its output; ``properties`` are added to its own."""
        known = {**self.properties, **(properties or {})}
        settings = [part for name, value in known.items() for part in ("-D", f"{name}={value}")]
        command = [sys.executable, "-m", "nutch2py.cli", *arguments, *settings, "--conf", str(self.conf)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.work, check=False)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(arguments)} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def rounds(self) -> None:
        """Crawl from the starts until no URL is due, unless that is done."""
        done = self.work / "crawled"
        if done.exists():
            return
        seeds = self.work / "seeds.txt"
        seeds.write_text("".join(f"{url}\n" for url in self.collection.starts))
        with served(self.collection.pages) as port:
            self.properties["http.proxy.port"] = str(port)
            self.run("inject", str(seeds))
            for number in range(1, 20):
                batch = f"round-{number}"
                if "containing 0 URLs" in self.run("generate", "-batchId", batch, check=False):
                    break
                for job in ("fetch", "parse", "updatedb"):
                    last = self.run(job, batch).strip().splitlines()[-1]
                    print(f"{self.collection.name}, round {number}: {last}", file=sys.stderr)
        done.touch()
