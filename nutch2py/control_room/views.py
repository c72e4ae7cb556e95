"""Views of the control room: read the context of each page for each request, without a table scan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from nutch2py.charts.chart import Chart
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact
from nutch2py.control_room import activity, crawl_charts, crawl_status, page_explanation
from nutch2py.control_room.page_responses import TemplatePage
from nutch2py.control_room.report import CrawlSnapshot, run_configuration
from nutch2py.control_room.round_stats import finish_time, group_rounds, remaining_ms, rows_per_second, sum_counters
from nutch2py.control_room.text_summary import summarize_crawl
from nutch2py.crawl_reader import CrawlReader
from nutch2py.doctor.check_result import CheckResult, CheckStatus
from nutch2py.doctor.check_runner import run_checks
from nutch2py.errors import InputError, NutchError
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.jobs.hostdb.hostdb_jobs import FETCHED_KEY, PAGES_KEY
from nutch2py.records.cells import decode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import Host, WebPage
from nutch2py.rest.context import find_entries_of_process
from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessManager, JobProcessState
from nutch2py.search.search_log.search_quality import SearchQuality, read_search_quality
from nutch2py.support.formatting import format_number
from nutch2py.url.display_url import display_url, host_forms
from nutch2py.url.idn import url_to_ascii
from nutch2py.url.keys import reverse_host, reverse_url

_CACHE_SECONDS = 10.0
"""Seconds for which check results are cached: a check waits up to five seconds for an unavailable service."""
_SEARCH_LOG_DAYS, _DEFAULT_SEARCH_LOG_DAYS = (1, 7, 30, 90), 7
_SEARCH_LOG_CACHE_SECONDS = 60.0
_MAX_LOGGED_SEARCHES = 20_000
"""Newest logged searches that the page of search quality reads."""
_STATUS_ORDER = {CheckStatus.ERROR: 0, CheckStatus.WARNING: 1, CheckStatus.OK: 2}


class DoctorView:
    """Page of ``doctor``: runs the checks once for all viewers and caches the results."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._valid_until, self._results = 0.0, list[CheckResult]()

    def __call__(self, _: dict[str, str]) -> TemplatePage:
        """Show the results, errors first."""
        results = sorted(self.results(), key=lambda each: _STATUS_ORDER[each.status])
        return TemplatePage("doctor.html", "Doctor", {"results": results})

    def results(self) -> list[CheckResult]:
        """Return the result of each check with secrets redacted."""
        with self._lock:
            if time.monotonic() >= self._valid_until:
                secrets = self._conf.secret_values()
                results = [each._replace(message=redact(each.message, secrets)) for each in run_checks(self._conf)]
                self._valid_until, self._results = time.monotonic() + _CACHE_SECONDS, results
            return self._results


class SearchQualityView:
    """Page of the search log's statistics: computes them once for all viewers and caches them."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._cache = dict[int, tuple[float, SearchQuality]]()

    def __call__(self, query: dict[str, str]) -> TemplatePage:
        """Show the statistics of the last days: ``days``, one of :data:`_SEARCH_LOG_DAYS`."""
        days = next((each for each in _SEARCH_LOG_DAYS if query.get("days") == str(each)), _DEFAULT_SEARCH_LOG_DAYS)
        values = {
            "quality": self._quality(days),
            "days": days,
            "day_choices": _SEARCH_LOG_DAYS,
            "is_logged": self._conf.get_bool("search.log", False),
            "max_searches": _MAX_LOGGED_SEARCHES,
        }
        return TemplatePage("search_quality.html", "Search quality", values)

    def _quality(self, days: int) -> SearchQuality:
        with self._lock:
            valid_until, quality = self._cache.get(days, (0.0, None))
            if quality is None or time.monotonic() >= valid_until:
                quality = read_search_quality(self._conf, days, PAGE_SIZE, limit=_MAX_LOGGED_SEARCHES)
                self._cache[days] = time.monotonic() + _SEARCH_LOG_CACHE_SECONDS, quality
            return quality


MAX_LOG_ENTRIES = 500
"""Newest job log entries that pages use."""
PAGE_SIZE = 50
"""Items of a list per page."""
_MAX_LINKS = 100
_LATEST_JOBS = 3
"""Latest jobs of this server, whose failures the first page shows."""
_OUTPUT_BYTES = 16_384
"""Bytes of the end of a job's output that its page shows."""
_TOP_HOSTS = 20
_PAGE_FIELDS: frozenset[RecordField] = frozenset({WebPage.status, WebPage.fetch_time, WebPage.score, WebPage.title})
_HOST_FIELDS: frozenset[RecordField] = frozenset({Host.metadata})


class NotFoundError(Exception):
    """No such job, host or page. ``str(error)`` is the message."""


class RunningJob(NamedTuple):
    """A running job: log entry, rows per second, estimated remaining ms and fraction done (None: unknown)."""

    entry: JobEntry
    rate: float
    remaining_ms: int | None
    fraction: float | None


def _running_jobs(entries: list[JobEntry]) -> list[RunningJob]:
    running = []
    for entry in entries:
        if entry.state == JobState.RUNNING:
            fraction = min(entry.rows / entry.expected, 1.0) if entry.expected else None
            running.append(RunningJob(entry, rows_per_second(entry), remaining_ms(entry), fraction))
    return running


class ControlRoomViews:
    """Reads the context of each page.

    Args:
        reader: Opens the crawl.
        jobs: The jobs that this server started.
        crawl_id: Identifier of the crawl.
    """

    def __init__(self, reader: Callable[[], CrawlReader], jobs: JobProcessManager, crawl_id: str = "") -> None:
        self._reader, self._jobs, self._crawl_id = reader, jobs, crawl_id
        self._chart_cache: tuple[int | None, list[Chart], Chart] | None = None

    def crawl(self, _: dict[str, str]) -> TemplatePage:
        """Show the overview of the crawl."""
        with self._reader() as crawl:
            state = CrawlSnapshot.from_crawl(crawl, MAX_LOG_ENTRIES)
            batches = crawl.batches(count=False)
        rounds = state.rounds
        values = {
            "crawl": state.name,
            "state": crawl_status.crawl_state(state.entries),
            "key_numbers": [*crawl_status.key_numbers(state.table_stats, state.overview, rounds, state.entries)],
            "attention": crawl_status.find_attention(state.entries, state.skipped),
            "summary": [*summarize_crawl(state.table_stats, state.overview, rounds, state.entries)],
            "running_jobs": _running_jobs(state.entries),
            **self.jobs_started_here(),
            "jobs": state.entries[:8],
            "batches": batches[-10:][::-1],
            "batch_count": len(batches),
            "skipped": state.skipped,
            "charts": [*state.charts()],
        }
        return TemplatePage("crawl.html", f"Crawl {state.name}".rstrip(), values)

    def jobs_started_here(self) -> dict[str, list[JobProcess]]:
        """Return the running jobs of the crawl that this server started, and those of its latest that failed."""
        jobs = self._processes()
        failed = [job for job in jobs[:_LATEST_JOBS] if job.state in (JobProcessState.FAILED, JobProcessState.KILLED)]
        return {"jobs_started_here": [job for job in jobs if job.state.is_alive], "failed_jobs": failed}

    def _processes(self) -> list[JobProcess]:
        """Return the jobs of the crawl that this server started, newest first."""
        return [job for job in self._jobs.all() if (job.crawl_id or self._crawl_id) == self._crawl_id]

    def jobs(self, query: dict[str, str]) -> TemplatePage:
        """List the jobs of the log, newest first, and those that this server started, which the log may lack."""
        before = query.get("before", "")
        with self._reader() as crawl:
            entries = crawl.jobs(PAGE_SIZE + 1, before or None)
        shown = entries[:PAGE_SIZE]
        values = {
            "processes": [] if before else self._processes()[:PAGE_SIZE],
            "jobs": shown,
            "running_jobs": [] if before else _running_jobs(shown),
            "next_before": shown[-1].id if len(entries) > PAGE_SIZE else "",
            "before": before,
        }
        return TemplatePage("jobs.html", "Jobs", values)

    def job(self, query: dict[str, str]) -> TemplatePage:
        """Show one job of the log, or one that this server started."""
        process = next((job for job in self._processes() if job.id == query.get("id")), None)
        if process is not None:
            return self._process(process)
        with self._reader() as crawl:
            entry = crawl.job(query.get("id", ""))
        if entry is None:
            raise NotFoundError("Job not found: the log has no such job, or no longer keeps it (joblog.keep).")
        duration = finish_time(entry) - entry.start_time
        values = {"job": entry, "running_jobs": _running_jobs([entry]), "duration_ms": duration}
        return TemplatePage("job.html", f"{entry.job} {entry.batch_id}".rstrip(), values)

    def _process(self, process: JobProcess) -> TemplatePage:
        """Show a job that this server started: its state, the end of its output, and its entries of the log."""
        size = self._jobs.read_output(process.id, 0, 0)[1]
        output, _ = self._jobs.read_output(process.id, max(size - _OUTPUT_BYTES, 0), _OUTPUT_BYTES)
        entries: list[JobEntry] = []
        with suppress(NutchError), self._reader() as crawl:  # the job may have failed before it created the crawl
            entries = find_entries_of_process(process, crawl.jobs(MAX_LOG_ENTRIES))[::-1]
        now = int(time.time() * 1000)
        values = {
            "job": process,
            "duration_ms": max((process.finish_time or now) - process.start_time, 0),
            "output": output.decode("utf-8", "replace").splitlines(),
            "is_cut": size > _OUTPUT_BYTES,
            "entries": entries[:PAGE_SIZE],
            "running_jobs": _running_jobs(entries),
        }
        return TemplatePage("process.html", process.job, values)

    def rounds(self, _: dict[str, str]) -> TemplatePage:
        """Show the rounds."""
        with self._reader() as crawl:
            entries, table_stats = crawl.jobs(MAX_LOG_ENTRIES), crawl.table_stats()
        rounds = group_rounds(entries)
        values = {
            "charts": [
                crawl_charts.draw_coverage(rounds),
                crawl_charts.draw_frontier(entries, table_stats),
                crawl_charts.draw_round_durations(rounds),
            ],
            "coverage": [*crawl_status.coverage_numbers(table_stats, entries)],
            "estimate": crawl_status.estimate_frontier(table_stats, rounds),
            "job_chart": crawl_charts.draw_job_timeline(entries[:200]),
            "rounds": rounds[-100:][::-1],
            "is_truncated": len(rounds) > 100,
        }
        return TemplatePage("rounds.html", "Rounds", values)

    def activity(self, query: dict[str, str]) -> TemplatePage:
        """Show throughput, errors and failing hosts of a range of time: ``range``, a name of a :class:`TimeRange`."""
        chosen = activity.find_range(query.get("range", ""))
        with self._reader() as crawl:
            entries = crawl.jobs(MAX_LOG_ENTRIES)
        current = activity.Activity.from_entries(entries, chosen, int(time.time() * 1000))
        values = {
            "chosen": chosen,
            "ranges": activity.TIME_RANGES,
            "job_count": len(current.entries),
            "is_truncated": len(entries) == len(current.entries) == MAX_LOG_ENTRIES,
            "span": current.span,
            "totals": sum_counters(current.entries),
            "wide_charts": [
                crawl_charts.draw_throughput(current.entries, current.fetch_span),
                crawl_charts.draw_errors_over_time(current.entries, current.fetch_span),
            ],
            "charts": [
                crawl_charts.draw_fetch_errors(current.entries),
                *crawl_charts.draw_response_histograms(current.entries),
            ],
            "failing": activity.count_failing_hosts(current.entries),
            "slow_hosts": activity.find_slow_hosts(current.entries),
        }
        return TemplatePage("activity.html", "Activity", values)

    def hosts(self, query: dict[str, str]) -> TemplatePage:
        """Show the hosts with the most pages, the links between them, and the host table by name."""
        start = query.get("from", "")
        with self._reader() as crawl:
            overview = crawl.overview()
            first = reverse_host(start) if start else ""
            host_rows = [
                (name, _host_settings(host))
                for name, host in islice(crawl.hosts(fields=_HOST_FIELDS, start=first), PAGE_SIZE + 1)
            ]
        charts, link_chart = self._overview_charts(overview)
        values = {
            "time": None if overview is None else overview.counted_at,
            "top_hosts": [] if overview is None else overview.hosts[:_TOP_HOSTS],
            "host_rows": host_rows[:PAGE_SIZE],
            "next_start": host_rows[PAGE_SIZE][0] if len(host_rows) > PAGE_SIZE else "",
            "start": start,
            "charts": charts,
            "link_chart": link_chart,
        }
        return TemplatePage("hosts.html", "Hosts", values)

    def _overview_charts(self, overview: Overview | None) -> tuple[list[Chart], Chart]:
        """Return the charts of an overview, cached: the layout of 200 hosts takes a quarter of a second."""
        cached, counted_at = self._chart_cache, None if overview is None else overview.counted_at
        if cached is None or cached[0] != counted_at:
            charts = [
                crawl_charts.draw_top_hosts(overview),
                *crawl_charts.draw_page_kinds(overview),
                *crawl_charts.draw_histograms(overview),
            ]
            self._chart_cache = cached = (counted_at, charts, crawl_charts.draw_host_links(overview))
        return cached[1], cached[2]

    def host(self, query: dict[str, str]) -> TemplatePage:
        """Show a host: its statistics, settings, links and pages."""
        name = query.get("name", "").strip()
        if not name:
            raise InputError("No host: enter a host name.")
        with self._reader() as crawl:
            overview = crawl.overview()
            for form in host_forms(name):
                row = crawl.host(form, _HOST_FIELDS)
                pages = [*_host_pages(crawl, form, query.get("from", ""))]
                host_stats = next((each for each in (overview.hosts if overview else ()) if each.host == form), None)
                if row is not None or host_stats is not None or pages:
                    name = form
                    break
            entries = crawl.jobs(MAX_LOG_ENTRIES)
            conf = run_configuration(crawl.conf, entries, "fetch")
        if row is None and host_stats is None and not pages:
            raise NotFoundError("Host not found: the crawl has no page and no row of this host.")
        links = [] if overview is None else [each for each in overview.edges if name in (each.source, each.target)]
        values = {
            "name": name,
            "settings": {} if row is None else _host_settings(row),
            "host_stats": host_stats,
            "failures": activity.find_host_failures(entries, name),
            "queue": activity.find_queue(entries, name),
            "slow": next(
                (each for each in activity.find_slow_hosts(entries, MAX_LOG_ENTRIES) if each.host == name), None
            ),
            "pages": pages[:PAGE_SIZE],
            "next_start": pages[PAGE_SIZE][0] if len(pages) > PAGE_SIZE else "",
            "start": query.get("from", ""),
            "origins": sorted({origin for url, _, _ in pages if (origin := _origin(url))}),
            "delay": conf.get_float("fetcher.server.delay", 5.0),
            "uses_host_settings": conf.get_bool("fetcher.queue.use.host.settings", False),
            "links": links[:PAGE_SIZE],
        }
        return TemplatePage("host.html", name, values)

    def page(self, query: dict[str, str]) -> TemplatePage:
        """Show the row of a page; without a URL, show a form."""
        url = query.get("url", "").strip()
        if not url:
            return TemplatePage("which_page.html", "Page", {})
        with self._reader() as crawl:
            page = crawl.page(url, page_explanation.EXPLAINED_FIELDS)
            if page is None and (ascii_url := url_to_ascii(url)) not in (None, url):  # copied from the control room
                url, page = ascii_url, crawl.page(ascii_url, page_explanation.EXPLAINED_FIELDS)
            if page is None:
                raise NotFoundError(f"Page not found: the crawl has no row for {url}, and no parsed page links to it.")
            entries = crawl.jobs(MAX_LOG_ENTRIES)
            conf = run_configuration(crawl.conf, entries)
        jobs_by_batch = {entry.batch_id: entry for entry in entries if entry.batch_id}
        inlinks, outlinks = dict(page.inlinks.decoded_items()), dict(page.outlinks.decoded_items())
        now = int(time.time() * 1000)
        values = {
            "url": url,
            "key": reverse_url(url),
            "page": page,
            "status": page_explanation.status_label(page.status),
            "history": [*page_explanation.page_history(page)],
            "jobs_by_batch": jobs_by_batch,
            "inlinks": sorted(inlinks.items())[:_MAX_LINKS],
            "inlink_count": len(inlinks),
            "outlinks": sorted(outlinks.items())[:_MAX_LINKS],
            "outlink_count": len(outlinks),
            "due_explanation": [*page_explanation.explain_due(url, page, conf, now)],
        }
        return TemplatePage("page.html", page.title or display_url(url), values)


def _host_pages(crawl: CrawlReader, host: str, start: str) -> Iterator[tuple[str, WebPage, str]]:
    """Yield URL, row and status label of a host's pages from the URL ``start`` on, one more than a page shows."""
    prefix = f"{reverse_host(host)}:"
    try:
        first = reverse_url(start) if start else prefix
    except ValueError as error:
        raise InputError(f"{start} is not a URL: {error}") from error
    rows = crawl.pages(fields=_PAGE_FIELDS, start=max(first, prefix), stop=f"{prefix[:-1]};")
    for url, row in islice(rows, PAGE_SIZE + 1):
        yield url, row, page_explanation.status_label(row.status)


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.partition('/')[0]}" if separator else ""


def _host_settings(host: Host) -> dict[str, str]:
    """Return counts and settings of a host row, formatted, by metadata key."""
    cells = {name: decode_text(cell) for name, cell in host.metadata.items()}
    known = {name: cells[name] for name in (PAGES_KEY, FETCHED_KEY, "q_mt", "q_cd", "q_mcd") if name in cells}
    return {name: format_number(int(value)) if value.isdecimal() else value for name, value in known.items()}
