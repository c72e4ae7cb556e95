"""fetch: ROWS pages of 10 KB on 50 hosts of a local nginx, no delay, 50 concurrent requests; then alternatives."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measuring import CommandError, Measurement, Nutch, run
from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.table import TableQuery, open_store

ROWS = (1_000, 10_000, 100_000)
AIMS = {10_000: 10.0}
BATCH = "1600000000-1"
THREADS = 50
BARE = {
    "short": "the handler bare",
    "whole": "the handler bare in full Scrapy mode",
    "scrapy": "Scrapy alone",
    "aiohttp": "aiohttp alone",
}
"""Kinds of bench.bare_handler, with their labels."""
_HOSTS = 50
_ROOT = Path(__file__).resolve().parent.parent
_SITE = Path(os.environ.get("NUTCH2PY_BENCH_SITE", _ROOT.parent / "shared" / "bench-site"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def site(pages: int, folder: Path) -> Iterator[None]:
    """Generate the site in ``folder`` (``all_urls.txt``, ``hosts.txt``) and serve it with nginx."""
    generator, nginx = _SITE / "gen_site.py", shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not generator.is_file() or nginx is None:
        raise CommandError("fetch needs nginx and gen_site.py: set NUTCH2PY_BENCH_SITE to the folder of gen_site.py")
    folder.chmod(0o755)  # nginx's workers run as another user
    port = _free_port()
    size = ["--hosts", str(_HOSTS), "--pages", str(max(pages // _HOSTS, 1)), "--size", "10240", "--links", "20"]
    run([sys.executable, str(generator), "--out", "www", *size, "--port", str(port), "--seed", "42"], folder=folder)
    settings = folder / "nginx.conf"
    # Its cache would exceed the limit of open files, and further files would be 404.
    settings.write_text(settings.read_text().replace("open_file_cache max=20000", "open_file_cache max=500"))
    with subprocess.Popen([nginx, "-c", str(settings)], stderr=subprocess.DEVNULL, cwd=folder) as server:
        try:
            for _ in range(100):
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            server.terminate()


def fetched(conf: Configuration) -> int:
    """Return the number of fetched rows of the batch."""
    rows = open_store(conf, WebPage).scan(TableQuery(frozenset({WebPage.markers, WebPage.status})))
    return sum(page.markers.get(Mark.FETCH) == BATCH and page.status == CrawlStatus.FETCHED for _, page in rows)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py fetch`` with all its processes, and the download handler without queues and table."""
    settings = {
        "http.hosts.file": str(folder / "hosts.txt"),
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0",
    }
    nutch = Nutch(folder, runner, **settings)
    with site(rows, folder):
        nutch("inject", str(folder / "all_urls.txt"))
        nutch("generate", "-batchId", BATCH)
        cost = nutch("fetch", BATCH, "-threads", str(THREADS))
        count = fetched(Configuration.load(overrides=nutch.settings))
        if count != rows:
            raise CommandError(f"{count:,} of {rows:,} pages were fetched")
        whole = nutch("fetch", BATCH, "-threads", str(THREADS), "-D", "fetcher.scrapy.whole=true")
        words = [str(THREADS), str(folder / "hosts.txt"), str(folder / "all_urls.txt")]
        bare = [run([sys.executable, "-P", "-m", "bench.bare_handler", *words, kind], folder=folder) for kind in BARE]
    return [
        Measurement(f"fetch {rows:,} pages", rows, cost, "pages", AIMS.get(rows)),
        Measurement(f"fetch {rows:,} pages in full Scrapy mode", rows, whole, "pages"),
        *(
            Measurement(f"{name}, {rows:,} pages", rows, each, "pages")
            for name, each in zip(BARE.values(), bare, strict=True)
        ),
    ]
