"""Commands parsechecker, indexchecker and robotsparser, which check one page or file without a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from nutch2py.browser.render_diff import format_render_diff
from nutch2py.browser.renderer_factory import open_renderer
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, NutchError, UsageError
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.page_renderer import RendererFactory
from nutch2py.fetcher.protocols.http_settings import require_agent_name
from nutch2py.fetcher.robots.robots_cache import robots_agent_names
from nutch2py.fetcher.robots.robots_rules import RobotsLimits, parse_robots
from nutch2py.indexer.indexchecker import format_checked_document
from nutch2py.jobs.row_output.row_text import format_protocol_status
from nutch2py.parser.parsechecker import check_parse
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.url.keys import reverse_url


def fetch_page(conf: Configuration, url: str, renderer: RendererFactory | None = None) -> WebPage:
    """Fetch one URL as the FetcherJob would, robots rules included; raise NutchError without content."""
    try:
        item = FetchItem(reverse_url(url), url, WebPage())
    except ValueError as error:
        raise UsageError(f"{url} is not a URL: {error}") from error
    options = replace(FetchOptions.from_conf(conf, threads=1), parse=False)
    Fetcher(conf, log=_discard_line, options=options, open_renderer=renderer).run(iter([item]), _keep_item)
    page = item.page
    if page.status != CrawlStatus.FETCHED or page.content is None:
        raise NutchError(f"fetch of {url} failed with protocol status: {format_protocol_status(page.protocol_status)}")
    return page


def _discard_line(_: str) -> None:
    """Ignore a log line of the fetcher."""


def _keep_item(_: FetchItem) -> None:
    """Do nothing: the item keeps the page."""


def run_parse_checker(
    conf: Configuration, url: str, dump_text: bool, forced_type: str | None = None, *, render: bool = False
) -> int:
    """Print the parse result of a URL; with ``render`` first the differences that a browser makes."""
    page = fetch_page(conf, url, open_renderer(conf, render_all=render))
    if render:
        print(format_render_diff(conf, url, fetch_page(conf, url), page), end="")
    print(check_parse(conf, url, page, dump_text=dump_text, force_as=forced_type), end="")
    return 0


def run_index_checker(conf: Configuration, url: str) -> int:
    """Print the index document of a URL."""
    page = fetch_page(conf, url, open_renderer(conf))
    print(f"fetching: {url}\nparsing: {url}\ncontentType: {page.content_type}")
    outcome = ParseWorkerClient(conf).parse_row(reverse_url(url), page)
    if outcome.label != "success":
        raise NutchError(f"parse of {url} failed: {outcome.message or outcome.label}")
    print(format_checked_document(conf, url, page), end="")
    return 0


def run_robots_checker(conf: Configuration, robots_file: str, url_file: str, agents: list[str]) -> int:
    """Print ``allowed:`` or ``not allowed:`` for each URL of a file; the robots.txt is a file or a URL."""
    if not agents:
        require_agent_name(conf)
    names = tuple(agents) or robots_agent_names(conf)
    remote = "://" in robots_file
    content = fetch_page(conf, robots_file).content if remote else _read_file(robots_file)
    rules = parse_robots(content or b"", names, robots_file if remote else "", RobotsLimits.from_conf(conf))
    lines = sys.stdin.read() if url_file == "-" else _read_file(url_file).decode("utf-8", "replace")
    for url in filter(None, map(str.strip, lines.splitlines())):
        print(f"{'allowed' if rules.is_allowed(url) else 'not allowed'}:\t{url}")
    return 0


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}: check that it exists and is readable") from error
