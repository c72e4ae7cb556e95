"""Take the screenshots of docs/pictures: build the documentation site, crawl it, serve the crawl, open it in Chromium.

Each view is a picture for light and one for dark pages. The site is served as docs.example.org through a proxy on
loopback, so that the pictures show a public address.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from nutch2py.browser.chromium import EXECUTABLE_NAMES
from tests.import_graph import ROOT

HOST = "docs.example.org"
VIEWS = {"control-room": "/crawl", "search": "/?q=crawl+delay+of+robots.txt"}
"""Path of each picture on the server."""
SCHEMES = ("light", "dark")
_SIZE = {"width": 1200, "height": 860}


@contextmanager
def site_proxy(folder: Path) -> Iterator[int]:
    """Serve a folder as :data:`HOST` behind a proxy; yield its port."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *words: object) -> None:
            super().__init__(*words, directory=str(folder))  # type: ignore[arg-type]

        def translate_path(self, path: str) -> str:
            return super().translate_path(urlsplit(path).path)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def nutch2py(*words: str, folder: Path) -> None:
    """Run a command in a folder."""
    subprocess.run([sys.executable, "-m", "nutch2py", *words], cwd=folder, check=True)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run ``nutch2py serve`` for the crawl of a folder; yield its address."""
    command = [sys.executable, "-u", "-m", "nutch2py", "serve", "-port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0]
                    break
        finally:
            process.terminate()


def take(address: str, output: Path) -> None:
    """Write a picture of each view in each scheme."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for name, path in VIEWS.items():
            for scheme in SCHEMES:
                page = browser.new_page(viewport=_SIZE, color_scheme=scheme)  # type: ignore[arg-type]
                page.goto(address + path)
                page.wait_for_load_state("load")
                page.screenshot(path=output / f"{name}-{scheme}.png")
                page.close()
        browser.close()


def main() -> int:
    """Take the pictures; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/test pictures", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", dest="output", type=Path, default=ROOT / "docs" / "pictures", help="folder to write to")
    output = parser.parse_args().output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site = folder / "html"
        subprocess.run([sys.executable, ROOT / "scripts" / "docs", "site", "-o", site], check=True)
        os.environ["PYTHONPATH"] = str(ROOT)
        with site_proxy(site) as port:
            properties = (
                "http.proxy.host=127.0.0.1", f"http.proxy.port={port}", "fetcher.server.delay=0",
                "http.agent.name=example-crawler",
            )  # fmt: skip
            words = [word for each in properties for word in ("-D", each)]
            nutch2py("crawl", f"http://{HOST}/", *words, folder=folder)
        with served(folder) as address:
            take(address, output)
    print(*(f"{output.name}/{view}-{scheme}.png" for view in VIEWS for scheme in SCHEMES), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
