"""The documentation site: a strict build, offline search, no outside request, phones, accessibility."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.charts.chrome import axe, chrome, faults, open_page, too_wide
from tests.import_graph import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["axe", "chrome"]

TERMS = {
    "robots.txt": "fetching",
    "sitemap": "jobs/inject",
    "fetcher.threads.fetch": "configuration",
    "http.agent.name": "configuration",
    "crawl delay": "fetching",
    "PageRank": "jobs/pagerank",
    "OPIC": "plugins/scoringfilter",
    "journal": "design/jobs",
    "HBase": "stores/hbase",
    "Thrift": "stores/hbase",
    "Solr": "solr",
    "OpenSearch": "elastic",
    "YARN": "hadoop",
    "pipx": "install",
    "generate_job": "",
    "SearchClient": "python-api",
    "URLFilter": "plugins/urlfilter",
    "exit codes": "operations",
    "Prometheus": "watching",
    "dedup": "jobs/dedup",
    "WARC": "how-to/warc",
    "systemd": "how-to/cron-and-systemd",
    "pandas": "tutorial/data-frame",
    "intranet": "how-to/intranet",
    "backup": "how-to/backup",
}
"""Search terms, with a page that the search must list; "" for a term of no page."""
VIEWED = (
    "index.html",
    "install.html",
    "configuration.html",
    "python-api.html",
    "rest-operations.html",
    "jobs/crawl.html",
)


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


def build(output: Path, *, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``scripts/docs site``; skip the test when the packages of the site cannot be installed."""
    command = [sys.executable, root / "scripts" / "docs", "site", "-o", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "could not be installed" in done.stderr:
        pytest.skip("no network: the packages of requirements-docs.lock are missing")
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("site") / "html"
    done = build(output)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(built)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_site_has_every_page_as_html_and_markdown(built: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 50
    assert [page for page in pages if not (built / page).is_file()] == []
    assert [page for page in pages if not (built / page.with_suffix(".html")).is_file()] == []
    listed = re.findall(r"\]\(([^)]+\.md)\)", (built / "llms.txt").read_text(encoding="utf-8"))
    assert sorted(set(listed)) == sorted(listed)
    assert [page for page in listed if not (built / page).is_file()] == []
    parts = {"index.md", "how-to.md", "reference.md", "explanation.md", "tutorial/index.md"}
    assert {page.as_posix() for page in pages} - parts <= {*listed}
    assert {"python-api.md", "rest-operations.md"} <= {*listed}


def test_python_api_and_rest_operations_are_rendered(built: Path) -> None:
    api = (built / "python-api.html").read_text(encoding="utf-8")
    for name in ("Crawl.generate", "Crawl.search", "SearchClient.iter_hits", "URLFilter.filter", "SearchQuery"):
        assert re.search(rf'id="nutch2py\.[\w.]*{re.escape(name)}"', api), name
    markdown = (built / "python-api.md").read_text(encoding="utf-8")
    for heading in ("### nutch2py.crawl.Crawl(", "#### generate(", "#### filter(url: 'str')"):
        assert heading in markdown
    assert "GET /api/v1/search" in (built / "rest-operations.html").read_text(encoding="utf-8")


SMALL_DOCS = {
    "index.md": "# Index\n",
    "install.md": "# Install\n",
    "how-to.md": "# How-to\n",
    "explanation.md": "# Explanation\n",
    "tutorial/index.md": "# Tutorial\n",
    "reference.md": "# Reference\n\n- [REST](rest.md)\n- [Python](python.md)\n- [Plug-ins](plugins/index.md)\n"
    "\n<!-- site: generated pages -->\n",
    "rest.md": "# REST\n",
    "python.md": "# Python\n",
    "plugins/index.md": "# Plug-ins\n",
}
"""A site of few pages: those that the build itself links to."""


def test_broken_link_or_anchor_fails_build(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "scripts", copy / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "nutch2py").symlink_to(ROOT / "nutch2py")
    broken = {"install.md": SMALL_DOCS["install.md"] + "\n[a](no-page.md) [b](python.md#no-anchor)\n"}
    for name, text in (SMALL_DOCS | broken).items():
        (copy / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / "docs" / name).write_text(text, encoding="utf-8")
    python = ROOT / ".cache" / "docs-environment" / "bin" / "python"
    command = [python, copy / "scripts" / "site" / "build.py", tmp_path / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    warnings = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert len(warnings) == 2, done.stderr
    assert "no-page.md" in warnings[0]
    assert "no-anchor" in warnings[1]
    assert not (tmp_path / "html").exists()


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_terms_without_outside_request(chrome: Browser, built: Path, address: str, scheme: str) -> None:
    start = address if scheme == "http" else f"{built.as_uri()}/"
    with open_page(chrome) as page:
        for term, expected in TERMS.items():
            page.goto(f"{start}search.html?q={term}")
            page.wait_for_function(
                "() => /finished|did not match/.test(document.querySelector('#search-results').innerText)"
            )
            found = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
            pages = {url.removeprefix(start).partition("?")[0].partition("#")[0].removesuffix(".html") for url in found}
            assert expected in pages if expected else not pages, (term, pages)
        assert [url for url in page.requested_urls if not url.startswith((start, "data:"))] == []


def test_every_page_requests_only_files_of_site_and_fits_phone(chrome: Browser, built: Path, address: str) -> None:
    with open_page(chrome) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        wide = {}
        for path in sorted(built.rglob("*.html")):
            page.goto(address + path.relative_to(built).as_posix())
            if too_wide(page):
                wide[path.name] = too_wide(page)
        assert wide == {}
        assert [url for url in page.requested_urls if not url.startswith((address, "data:"))] == []
        assert page.console_lines == []


def inaccessible(chrome: Browser, axe: str, address: str, scheme: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return what axe finds on pages, by page."""
    with open_page(chrome, scheme=scheme) as page:
        return {name: found for name in names if (page.goto(address + name), found := faults(page, axe))[1]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(chrome: Browser, axe: str, address: str, scheme: str) -> None:
    assert inaccessible(chrome, axe, address, scheme, VIEWED) == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(chrome: Browser, axe: str, built: Path, address: str, scheme: str) -> None:
    names = sorted(path.relative_to(built).as_posix() for path in built.rglob("*.html"))
    assert len(names) > 100
    assert inaccessible(chrome, axe, address, scheme, names) == {}
