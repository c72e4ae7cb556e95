"""Pages rendered in one task: ``python -m bench.rendering [PAGES [PARTS]]``, by default 10,000 in 10.

A separate process serves a small application with text from an additional request of its script. Printed after each
part of the pages: pages per second and per CPU second of the task with its browser, the memory of all its processes
(PSS: shared pages divided among their users), and the number of processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from nutch2py.browser.chromium import iter_descendants
from nutch2py.browser.renderer_factory import open_renderer
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.records.webpage import WebPage
from nutch2py.url.keys import reverse_url

PAGES, PARTS = 10_000, 10
SITE = """
import http.server
SHELL = b'<!doctype html><title>x</title><div id=root></div><script src=/app.js></script>'
APP = b'''fetch("/data" + location.pathname).then((answer) => answer.text()).then((text) => {
  const links = Array.from({length: 50}, (_, n) => `<p><a href="/page/${n}">to ${n}</a>`);
  root.innerHTML = "<h1>" + text + "</h1>" + links.join("");
});'''
class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        script, data = self.path == "/app.js", self.path.startswith("/data")
        body = APP if script else b"text of " + self.path.encode() if data else SHELL
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Cache-Control", "max-age=3600" if script else "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process, without its children: those of Chromium are counted themselves."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / _TICKS


def kind_of(pid: int) -> str:
    """Return the role of a process: the task, Playwright's driver, the browser, or a type of browser process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").split()
    except OSError:
        return "ended"
    if not words:
        return "ended"
    types = [
        word.partition(b"=")[2].decode() for word in words if word.startswith((b"--type=", b"--utility-sub-type="))
    ]
    if types:
        return types[-1]
    name = Path(os.fsdecode(words[0])).name
    return {"node": "driver", "chromium": "browser"}.get(name, "task")


def share(pid: int) -> int:
    """Return the proportional memory (PSS) of a process in bytes; 0 when it has exited."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


class Watch:
    """Counts pages, and prints statistics after each part."""

    def __init__(self, pages: int, parts: int) -> None:
        self._each = max(1, pages // parts)
        self._done = self._right = 0
        self._began = time.monotonic()
        self._seen: dict[int, float] = {}
        self._kinds: dict[int, str] = {}
        self._before = 0.0

    def spent(self) -> float:
        """Return the CPU seconds of this process and its descendants, with those that have exited."""
        for pid in (os.getpid(), *iter_descendants(os.getpid())):
            self._seen[pid] = max(self._seen.get(pid, 0.0), cpu(pid))
            if self._kinds.get(pid, "task") in ("task", "zygote"):
                self._kinds[pid] = kind_of(pid)
        return sum(self._seen.values())

    def shares(self) -> dict[str, float]:
        """Return the CPU seconds by role of process."""
        found: defaultdict[str, float] = defaultdict(float)
        for pid, seconds in self._seen.items():
            found[self._kinds[pid]] += seconds
        return {kind: round(found[kind], 1) for kind in sorted(found, key=lambda kind: -found[kind])}

    def __call__(self, item: FetchItem) -> None:
        """Count a page."""
        self._done += 1
        self._right += b"text of /data" in (item.page.content or b"")
        self.spent()  # before processes exit
        if self._done % self._each == 0:
            below = [os.getpid(), *iter_descendants(os.getpid())]
            total, now = self.spent(), time.monotonic()
            print(
                f"{self._done:>7,} pages, {self._right:,} right: {self._each / (now - self._began):6.2f} pages/s, "
                f"{self._each / max(0.01, total - self._before):6.2f} pages/CPU s, "
                f"{sum(map(share, below)) >> 20:,} MB, {len(below)} processes",
                flush=True,
            )
            self._before, self._began = total, now


def main(pages: int = PAGES, parts: int = PARTS) -> None:
    """Render a number of pages."""
    conf = Configuration.load(
        overrides={
            "http.agent.name": "bench",
            "http.filter.ipaddress.exclude": "",
            "fetcher.server.delay": "0",
            "fetcher.threads.per.queue": "4",
            "plugin.includes.add": "protocol-browser",
        }
    )
    site = subprocess.Popen([sys.executable, "-c", SITE], stdout=subprocess.PIPE, text=True)
    try:
        assert site.stdout is not None
        prefix = f"http://127.0.0.1:{int(site.stdout.readline())}/page/"
        items = (FetchItem(reverse_url(prefix + str(n)), prefix + str(n), WebPage()) for n in range(pages))
        watch = Watch(pages, parts)
        report = Fetcher(conf, 4, log=lambda _: None, open_renderer=open_renderer(conf)).run(items, watch)
        print("CPU s:", watch.shares())
        print(dict(sorted(report.counters.items())))
    finally:
        site.kill()
        site.wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
