"""Headless Chromium that records console messages and requests of pages, and axe-core for accessibility checks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nutch2py.browser.chromium import EXECUTABLE_NAMES
from tests.import_graph import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = "axe-core@4.14.1"
SIZES = {"phone": (360, 740), "desk": (1280, 900)}
VIEWS = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    """Yield the installed browser, driven by Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright")
    path = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)
    if path is None:
        pytest.skip("no Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the source of axe-core from npm, which is cached for the next run."""
    folder = ROOT / ".cache" / "axe"
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not source.is_file():
        if shutil.which("npm") is None:
            pytest.skip("no npm")
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--no-save", AXE]
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm has no packages: {done.stderr[-200:]}")
    return source.read_text("utf-8")


@contextmanager
def open_page(browser: Browser, size: str = "desk", scheme: str = "light", scripts: bool = True) -> Iterator[Page]:
    """Open a page that records console messages and errors (console_lines) and ``requested_urls``."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
    )
    page: Any = context.new_page()
    page.console_lines, page.requested_urls = [], []
    page.on("console", lambda message: page.console_lines.append(message.text))
    page.on("pageerror", lambda error: page.console_lines.append(str(error)))
    page.on("request", lambda request: page.requested_urls.append(request.url))
    try:
        yield page
    finally:
        context.close()


def faults(page: Page, axe: str) -> list[str]:
    """Return the violations that axe-core finds, by rule and element."""
    page.evaluate(axe)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [f"{fault['id']}: {node['html'][:200]}" for fault in found["violations"] for node in fault["nodes"]]


def too_wide(page: Page) -> int:
    """Return the pixels by which the page is wider than the screen."""
    return int(page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth"))


OUT_OF_REACH = """() => {
  const found = [];
  for (const table of document.querySelectorAll('table')) {
    let box = table.parentElement;
    while (box && !['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) box = box.parentElement;
    for (const cell of table.querySelectorAll('th, td')) {
      if (!cell.offsetParent) continue;
      if (box) {
        box.scrollLeft = 0;
        box.scrollLeft = cell.getBoundingClientRect().right - box.getBoundingClientRect().right;
      }
      const at = cell.getBoundingClientRect();
      const ends = box ? Math.min(box.getBoundingClientRect().right, innerWidth) : innerWidth;
      if (at.right > ends + 1.5) found.push('cut: ' + cell.textContent.slice(0, 60));
      if (at.width > ends + 1.5) found.push('wider than the screen: ' + cell.textContent.slice(0, 60));
      if (box) box.scrollLeft = 0;
    }
    if (box && box.scrollWidth > box.clientWidth + 1 && box.tabIndex < 0)
      found.push('no keyboard scrolls ' + table.textContent.slice(0, 60));
  }
  return found;
}"""
"""Script: table cells that scrolling cannot bring completely onto the screen."""

OVERLAPS = """() => {
  const found = [];
  for (const drawing of document.querySelectorAll('svg.drawing')) {
    const texts = [...drawing.querySelectorAll('text')]
      .filter(text => getComputedStyle(text).display !== 'none' && text.textContent);
    const boxes = texts.map(t => t.getBoundingClientRect());
    for (let i = 0; i < boxes.length; i++) {
      const a = boxes[i];
      if (a.left < 0 || a.right > innerWidth) found.push('outside: ' + texts[i].textContent);
      for (let j = 0; j < i; j++) {
        const b = boxes[j];
        const over = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        if (over > 0.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5)
          found.push([drawing.querySelector('title'), texts[i], texts[j]].map(each => each.textContent).join(' / '));
      }
    }
  }
  return found;
}"""
"""Script: texts of charts that overlap others or are outside the screen."""


def save(page: Page, name: str, folder: str | None) -> None:
    """Save a screenshot of the whole page in ``folder``, unless it is empty."""
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
