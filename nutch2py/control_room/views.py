"""What each page of the control room shows, read anew for each request, and never by a scan of the table.

The page of ``doctor``: what a crawl stands on, looked at when somebody asks, and no more often than is useful.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from nutch2py.charts.chart import Chart
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact
from nutch2py.control_room import crawl_charts, page_explanation
from nutch2py.control_room.page_responses import TemplatePage
from nutch2py.control_room.report import CrawlSnapshot
from nutch2py.control_room.round_stats import finish_time, group_rounds, remaining_ms, rows_per_second
from nutch2py.control_room.text_summary import summarize_crawl
from nutch2py.crawl_reader import CrawlReader
from nutch2py.doctor.check_result import CheckResult, CheckStatus
from nutch2py.doctor.check_runner import run_checks
from nutch2py.errors import InputError
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.jobs.hostdb.hostdb_jobs import FETCHED_KEY, PAGES_KEY
from nutch2py.records.cells import decode_text
from nutch2py.records.record import Field
from nutch2py.records.webpage import Host, WebPage
from nutch2py.rest.job_control.job_processes import JobProcessManager
from nutch2py.support.formatting import format_number
from nutch2py.url.keys import reverse_host, reverse_url

_CACHE_SECONDS = 10.0
"""Seconds for which findings hold: services that are away are tried for five."""
_STATUS_ORDER = {CheckStatus.ERROR: 0, CheckStatus.WARNING: 1, CheckStatus.OK: 2}


class DoctorView:
    """Looks at what the crawl of a configuration stands on; one look at a time, however many ask."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._valid_until, self._results = 0.0, list[CheckResult]()

    def __call__(self, _: dict[str, str]) -> TemplatePage:
        """Show the findings: what is bad first."""
        found = sorted(self.results(), key=lambda each: _STATUS_ORDER[each.status])
        return TemplatePage("doctor.html", "Doctor", {"findings": found})

    def results(self) -> list[CheckResult]:
        """Return what each look found, without secrets."""
        with self._lock:
            if time.monotonic() >= self._valid_until:
                secrets = self._conf.secret_values()
                found = [each._replace(message=redact(each.message, secrets)) for each in run_checks(self._conf)]
                self._valid_until, self._results = time.monotonic() + _CACHE_SECONDS, found
            return self._results


MAX_LOG_ENTRIES = 500
"""Newest entries of the log that pages are drawn from."""
PAGE_SIZE = 50
"""Lines of a list; a link leads to the next."""
_MAX_LINKS = 100
_TOP_HOSTS = 20
_PAGE_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.status, WebPage.fetch_time, WebPage.score, WebPage.title})
_HOST_FIELDS: frozenset[Field[Any]] = frozenset({Host.metadata})


class NotFoundError(Exception):
    """There is no such job, host or page; ``str(error)`` is said."""


class RunningJob(NamedTuple):
    """A job at work: its entry, rows a second, ms that it still needs (None: nothing tells), and its share of 1."""

    entry: JobEntry
    rate: float
    remaining_ms: int | None
    fraction: float | None


def _running_jobs(entries: list[JobEntry]) -> list[RunningJob]:
    found = []
    for entry in entries:
        if entry.state == JobState.RUNNING:
            share = min(entry.rows / entry.expected, 1.0) if entry.expected else None
            found.append(RunningJob(entry, rows_per_second(entry), remaining_ms(entry), share))
    return found


class ControlRoomViews:
    """Reads what a page shows. ``reader`` gives a crawl to read from; ``children``: jobs that were begun here."""

    def __init__(self, reader: Callable[[], CrawlReader], jobs: JobProcessManager) -> None:
        self._reader, self._jobs = reader, jobs
        self._chart_cache: tuple[int | None, list[Chart], Chart] | None = None

    def crawl(self, _: dict[str, str]) -> TemplatePage:
        """Show the crawl at a glance."""
        with self._reader() as crawl:
            state = CrawlSnapshot.from_crawl(crawl, MAX_LOG_ENTRIES)
            batches = crawl.batches(count=False)
        rounds = state.rounds
        values = {
            "crawl": state.name,
            "sentences": [*summarize_crawl(state.table_stats, state.overview, rounds, state.entries)],
            "running": _running_jobs(state.entries),
            "children": [child for child in self._jobs.all() if child.state.is_alive],
            "jobs": state.entries[:8],
            "batches": batches[-10:][::-1],
            "all_batches": len(batches),
            "left_out": state.skipped,
            "pictures": [*state.charts()],
        }
        return TemplatePage("crawl.html", f"Crawl {state.name}".rstrip(), values)

    def jobs(self, asked: dict[str, str]) -> TemplatePage:
        """List jobs, the newest first."""
        before = asked.get("before", "")
        with self._reader() as crawl:
            entries = crawl.jobs(PAGE_SIZE + 1, before or None)
        shown = entries[:PAGE_SIZE]
        after = shown[-1].id if len(entries) > PAGE_SIZE else ""
        values = {"jobs": shown, "running": [] if before else _running_jobs(shown), "after": after, "before": before}
        return TemplatePage("jobs.html", "Jobs", values)

    def job(self, asked: dict[str, str]) -> TemplatePage:
        """Show one job."""
        with self._reader() as crawl:
            entry = crawl.job(asked.get("id", ""))
        if entry is None:
            raise NotFoundError("The log has no such job, or has it no more (joblog.keep).")
        values = {"job": entry, "running": _running_jobs([entry]), "took": finish_time(entry) - entry.start_time}
        return TemplatePage("job.html", f"{entry.job} {entry.batch_id}".rstrip(), values)

    def rounds(self, _: dict[str, str]) -> TemplatePage:
        """Show the rounds."""
        with self._reader() as crawl:
            entries = crawl.jobs(MAX_LOG_ENTRIES)
        rounds = group_rounds(entries)
        values = {
            "wide": crawl_charts.draw_job_timeline(entries[:200]),
            "rounds": rounds[-100:][::-1],
            "left_out": len(rounds) > 100,
        }
        return TemplatePage("rounds.html", "Rounds", values)

    def hosts(self, asked: dict[str, str]) -> TemplatePage:
        """Show the hosts with the most pages, what links between them, and the host table by name."""
        start = asked.get("from", "")
        with self._reader() as crawl:
            overview = crawl.overview()
            first = reverse_host(start) if start else ""
            listed = [
                (name, _host_settings(host))
                for name, host in islice(crawl.hosts(fields=_HOST_FIELDS, start=first), PAGE_SIZE + 1)
            ]
        pictures, links = self._overview_charts(overview)
        values = {
            "made": None if overview is None else overview.counted_at,
            "top": [] if overview is None else overview.hosts[:_TOP_HOSTS],
            "listed": listed[:PAGE_SIZE],
            "after": listed[PAGE_SIZE][0] if len(listed) > PAGE_SIZE else "",
            "start": start,
            "pictures": pictures,
            "wide": links,
        }
        return TemplatePage("hosts.html", "Hosts", values)

    def _overview_charts(self, overview: Overview | None) -> tuple[list[Chart], Chart]:
        """Return the pictures of an overview, drawn once: to place 200 hosts takes a quarter of a second."""
        kept, made = self._chart_cache, None if overview is None else overview.counted_at
        if kept is None or kept[0] != made:
            pictures = [crawl_charts.draw_top_hosts(overview), *crawl_charts.draw_histograms(overview)]
            self._chart_cache = kept = (made, pictures, crawl_charts.draw_host_links(overview))
        return kept[1], kept[2]

    def host(self, asked: dict[str, str]) -> TemplatePage:
        """Show a host: what is counted and set of it, and its pages."""
        name = asked.get("name", "").strip()
        if not name:
            raise InputError("Name a host.")
        with self._reader() as crawl:
            row = crawl.host(name, _HOST_FIELDS)
            overview = crawl.overview()
            pages = [*_host_pages(crawl, name, asked.get("from", ""))]
        seen = None if overview is None else next((each for each in overview.hosts if each.host == name), None)
        if row is None and seen is None and not pages:
            raise NotFoundError("The crawl has no page of this host, and no row for it.")
        conf = crawl.conf
        links = [] if overview is None else [each for each in overview.edges if name in (each.source, each.target)]
        values = {
            "name": name,
            "settings": {} if row is None else _host_settings(row),
            "seen": seen,
            "pages": pages[:PAGE_SIZE],
            "after": pages[PAGE_SIZE][0] if len(pages) > PAGE_SIZE else "",
            "start": asked.get("from", ""),
            "delay": conf.get_float("fetcher.server.delay", 5.0),
            "own_settings": conf.get_bool("fetcher.queue.use.host.settings", False),
            "links": links[:PAGE_SIZE],
        }
        return TemplatePage("host.html", name, values)

    def page(self, asked: dict[str, str]) -> TemplatePage:
        """Show a page's own row in words; without a URL, a place to type one."""
        url = asked.get("url", "").strip()
        if not url:
            return TemplatePage("which_page.html", "Page", {})
        with self._reader() as crawl:
            page = crawl.page(url, page_explanation.EXPLAINED_FIELDS)
            if page is None:
                raise NotFoundError(f"The crawl has no row for {url}: no page that was read links to it.")
            logged = {entry.batch_id: entry for entry in crawl.jobs(MAX_LOG_ENTRIES) if entry.batch_id}
        inlinks, outlinks = dict(page.inlinks.decoded_items()), dict(page.outlinks.decoded_items())
        now = int(time.time() * 1000)
        values = {
            "url": url,
            "key": reverse_url(url),
            "page": page,
            "status": page_explanation.status_label(page.status),
            "steps": [*page_explanation.page_history(page)],
            "logged": logged,
            "inlinks": sorted(inlinks.items())[:_MAX_LINKS],
            "all_inlinks": len(inlinks),
            "outlinks": sorted(outlinks.items())[:_MAX_LINKS],
            "all_outlinks": len(outlinks),
            "due": [*page_explanation.explain_due(url, page, crawl.conf, now)],
        }
        return TemplatePage("page.html", page.title or url, values)


def _host_pages(crawl: CrawlReader, host: str, start: str) -> Iterator[tuple[str, WebPage, str]]:
    """Yield URL, row and status in words of pages of a host, from the URL ``start`` on: one more than is shown."""
    prefix = f"{reverse_host(host)}:"
    try:
        first = reverse_url(start) if start else prefix
    except ValueError as error:
        raise InputError(f"{start} is not a URL: {error}") from error
    rows = crawl.pages(fields=_PAGE_FIELDS, start=max(first, prefix), stop=f"{prefix[:-1]};")
    for url, row in islice(rows, PAGE_SIZE + 1):
        yield url, row, page_explanation.status_label(row.status)


def _host_settings(host: Host) -> dict[str, str]:
    """Return what a row of the host table counts and sets, by name."""
    cells = {name: decode_text(cell) for name, cell in host.metadata.items()}
    known = {name: cells[name] for name in (PAGES_KEY, FETCHED_KEY, "q_mt", "q_cd", "q_mcd") if name in cells}
    return {name: format_number(int(value)) if value.isdecimal() else value for name, value in known.items()}
