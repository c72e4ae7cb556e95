"""Applications of React, Vue and Svelte, built from npm: content with a browser and without."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import WebPage
from tests.browser.conftest import Render
from tests.import_graph import ROOT
from tests.site.server import Reply, ScriptedSite

SOURCE = Path(__file__).parent / "apps"
PAGE = """<!doctype html><html lang="en"><head><meta charset="UTF-8"><title>NAME</title>
<script type="module" crossorigin src="/assets/NAME.js"></script></head><body>MOUNT</body></html>"""
MOUNTS = {"react": '<div id="root"></div>', "vue": '<div id="app"></div>', "svelte": ""}


@pytest.fixture(scope="module")
def built() -> Path:
    """Build the applications if npm and its registry are available; downloads and builds are cached."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("no npm")
    folder = ROOT / ".cache" / "browser-apps"
    folder.mkdir(parents=True, exist_ok=True)
    sources = {path.name: path.read_bytes() for path in SOURCE.iterdir() if path.is_file()}
    if any((folder / name).read_bytes() != source for name, source in sources.items() if (folder / name).exists()):
        shutil.rmtree(folder / "dist", ignore_errors=True)
    for name, source in sources.items():
        (folder / name).write_bytes(source)
    if not (folder / "dist").is_dir():
        install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm has no packages: {done.stderr[-200:]}")
        subprocess.run(["node", "build.mjs"], cwd=folder, check=True)
    return folder / "dist"


@pytest.fixture
def apps(site: ScriptedSite, built: Path) -> ScriptedSite:
    for path in built.iterdir():
        site.on(f"/assets/{path.name}", Reply(body=path.read_bytes(), content_type="text/javascript"))
    for name, mount in MOUNTS.items():
        site.on(f"/{name}/", Reply(body=PAGE.replace("NAME", name).replace("MOUNT", mount).encode()))
    site.on("/react/items/7", site.replies["/react/"][0])
    site.on("/api/items", Reply(body=json.dumps(["first thing", "second thing"]).encode()))
    for number in range(4):
        piece = {"id": number, "text": f"piece number {number}"}
        site.on(f"/api/piece/{number}", Reply(body=json.dumps(piece).encode()))
    return site


@pytest.fixture
def read(apps: ScriptedSite, render: Render) -> Callable[[str, WebPage], tuple[str, str, set[str]]]:
    """Return the parse of a page: title, text, paths of its links."""
    base_url = apps.url("")

    def parsed(url: str, page: WebPage) -> tuple[str, str, set[str]]:
        parsing = ParseWorkerClient(render.conf)
        parse = parsing.parse(url, page)
        parsing.close()
        return parse.title, parse.text, {link.url.removeprefix(base_url) for link in parse.outlinks}

    return parsed


def test_javascript_applications_have_text_and_links(
    apps: ScriptedSite, render: Render, read: Callable[[str, WebPage], tuple[str, str, set[str]]]
) -> None:
    react, item, vue, about, svelte = (
        apps.url(path) for path in ("/react/", "/react/items/7", "/vue/", "/vue/#/about", "/svelte/")
    )
    urls = (react, item, vue, about, svelte)
    render(*urls, plugin_includes_add="x")
    for url in urls:
        _, text, links = read(url, render.pages[url])
        assert text.strip() in ("", "react", "vue", "svelte")
        assert not [link for link in links if not link.startswith("/assets/")]
    render(*urls, rules="url /svelte/ auto idle scroll=20")
    assert render.report.counters["rendered_shells"] == 5
    found = {url: read(url, render.pages[url]) for url in urls}
    title, text, links = found[react]
    assert title == "Items of React"
    assert "first thing" in text
    assert "a footer that came late" in text
    assert links >= {"/react/items/0", "/react/items/1", "/imprint"}
    assert render.pages[react].base_url == apps.url("/react/items")
    assert "Item number 7" in found[item][1]
    assert "home of Vue" in found[vue][1]
    assert "/vue/from-home" in found[vue][2]
    assert render.pages[vue].base_url == apps.url("/vue/#/")
    assert "about Vue" in found[about][1]
    assert found[about][2] >= {"/vue/item/0", "/vue/item/1"}
    assert found[svelte][2] >= {f"/svelte/{number}" for number in range(4)}
    assert "piece number 3" in found[svelte][1]
