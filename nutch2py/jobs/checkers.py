"""parsechecker, indexchecker, robotsparser: one page or one file, no table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from nutch2py.browser.comparison import comparison
from nutch2py.browser.opening import open_renderer
from nutch2py.conf import Configuration
from nutch2py.errors import InputError, NutchError, UsageError
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.http_settings import check_agent
from nutch2py.fetcher.rendering import OpenRenderer
from nutch2py.fetcher.robots import agent_names
from nutch2py.fetcher.robots_rules import RobotsLimits, parse_robots
from nutch2py.indexer.indexchecker import check_text
from nutch2py.jobs.readdb_text import protocol_status_text
from nutch2py.parser.bounded_parsing import BoundedParsing
from nutch2py.parser.parsechecker import check
from nutch2py.url.keys import reverse_url
from nutch2py.webpage import CrawlStatus, WebPage


def fetch_page(conf: Configuration, url: str, renderer: OpenRenderer | None = None) -> WebPage:
    """Fetch one URL as the FetcherJob would, robots rules included; raise NutchError when there is no content."""
    try:
        item = FetchItem(reverse_url(url), url, WebPage())
    except ValueError as error:
        raise UsageError(f"{url} is not a URL: {error}") from error
    options = replace(FetchOptions.of(conf, threads=1), parse=False)
    Fetcher(conf, log=_quiet, options=options, renderer=renderer).run(iter([item]), _keep)
    page = item.page
    if page.status != CrawlStatus.FETCHED or page.content is None:
        raise NutchError(f"fetch of {url} failed with protocol status: {protocol_status_text(page.protocol_status)}")
    return page


def _quiet(_: str) -> None:
    """Leave a line of the fetcher's log out."""


def _keep(_: FetchItem) -> None:
    """Leave the page where it is, in its item."""


def parse_checker(
    conf: Configuration, url: str, dump_text: bool, force_as: str | None = None, *, render: bool = False
) -> int:
    """Print what parsing makes of a URL; with ``render`` what a browser adds to it, before."""
    page = fetch_page(conf, url, open_renderer(conf, every=render))
    if render:
        print(comparison(conf, url, fetch_page(conf, url), page), end="")
    print(check(conf, url, page, dump_text=dump_text, force_as=force_as), end="")
    return 0


def index_checker(conf: Configuration, url: str) -> int:
    """Print the document that a URL would become."""
    page = fetch_page(conf, url, open_renderer(conf))
    print(f"fetching: {url}\nparsing: {url}\ncontentType: {page.content_type}")
    outcome = BoundedParsing(conf).process(reverse_url(url), page)
    if outcome.label != "success":
        raise NutchError(f"parse of {url} failed: {outcome.message or outcome.label}")
    print(check_text(conf, url, page), end="")
    return 0


def robots_checker(conf: Configuration, robots_file: str, url_file: str, agents: list[str]) -> int:
    """Print ``allowed:`` or ``not allowed:`` with each URL of a file, by a robots.txt that is a file or a URL."""
    if not agents:
        check_agent(conf)
    names = tuple(agents) or agent_names(conf)
    remote = "://" in robots_file
    content = fetch_page(conf, robots_file).content if remote else _read(robots_file)
    rules = parse_robots(content or b"", names, robots_file if remote else "", RobotsLimits.of(conf))
    lines = sys.stdin.read() if url_file == "-" else _read(url_file).decode("utf-8", "replace")
    for url in filter(None, map(str.strip, lines.splitlines())):
        print(f"{'allowed' if rules.allowed(url) else 'not allowed'}:\t{url}")
    return 0


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}: check that it exists and may be read") from error
