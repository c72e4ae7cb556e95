from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from nutch2py.browser import chromium
from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.browser.chromium import EXECUTABLE_NAMES
from nutch2py.browser.renderer_factory import open_renderer
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem, FetchReport
from nutch2py.records.webpage import WebPage
from tests.fetcher.conftest import item, loopback


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need Chromium if it is not installed."""
    if not any(map(shutil.which, EXECUTABLE_NAMES)) or find_spec("playwright") is None:
        for each in items:
            if "render" in getattr(each, "fixturenames", ()):
                each.add_marker(pytest.mark.skip(reason="no Chromium or no playwright"))


@pytest.fixture
def browser_conf(tmp_path: Path) -> Configuration:
    """Return a configuration that renders pages of the loopback, with long limits for a busy machine."""
    patient = {"browser_time_limit": "180", "browser_idle_limit": "60", "browser_start_timeout": "180"}
    return loopback(tmp_path, plugin_includes_add="protocol-browser", **patient)


class Render:
    """Fetches URLs with a browser and keeps the sink's items."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self.pages: dict[str, WebPage] = {}
        self.log: list[str] = []
        self.report = FetchReport()

    def __call__(self, *urls: str, rules: str = "", **properties: str) -> WebPage:
        conf = self.conf.copy()
        if rules:
            conf.set("browser.rules", rules)
        for name, value in properties.items():
            conf.set(name.replace("_", "."), value)
        fetcher = Fetcher(conf, 4, log=self.log.append, open_renderer=open_renderer(conf))
        self.report = fetcher.run(map(item, urls), self._keep)
        return self.pages[urls[0]]

    def _keep(self, done: FetchItem) -> None:
        self.pages[done.url] = done.page


@pytest.fixture
def render(browser_conf: Configuration) -> Render:
    return Render(browser_conf)


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> list[chromium.BrowserProfile]:
    """Record the browsers that are started."""
    found: list[chromium.BrowserProfile] = []
    made = chromium.BrowserProfile.__init__

    def noted(home: chromium.BrowserProfile, settings: BrowserSettings) -> None:
        made(home, settings)
        found.append(home)

    monkeypatch.setattr(chromium.BrowserProfile, "__init__", noted)
    return found
