"""The tools: search, read and explain pages, statistics, and jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

import anyio
import msgspec

from nutch2py.control_room import page_explanation
from nutch2py.control_room.report import CrawlSnapshot, run_configuration
from nutch2py.control_room.text_summary import summarize_crawl
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.jobs.row_output.row_renderer import MarkdownRenderer
from nutch2py.mcp_server.tool_schemas import (
    CrawlAnswer,
    FoundPage,
    HostCounts,
    HostList,
    HostsArguments,
    JobAnswer,
    JobArguments,
    JobEffect,
    JobList,
    JobsArguments,
    JobStep,
    JobSummary,
    NoArguments,
    PageArguments,
    PageState,
    PageText,
    SearchAnswer,
    SearchArguments,
    StartArguments,
    StopArguments,
    ToolArguments,
    ToolResult,
    UrlArguments,
)
from nutch2py.mcp_server.untrusted_text import clean_page_text
from nutch2py.parser.filters.language_identifier import LANGUAGE_KEY
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.operation import ApiCall
from nutch2py.rest.endpoints.search_api import search
from nutch2py.rest.job_control.job_processes import JobProcess
from nutch2py.rest.job_control.job_requests import CrawlRequest
from nutch2py.search.search_schemas import SearchQuery
from nutch2py.url.idn import url_to_ascii

_MAX_TITLE, _MAX_SNIPPET, _MAX_URL = 300, 1000, 4096
_MAX_LINKS, _MAX_STEPS, _MAX_LOG_ENTRIES = 10, 20, 200
_POLL_SECONDS = 0.5
_TEXT_FIELDS: frozenset[RecordField] = frozenset(
    {
        WebPage.text, WebPage.title, WebPage.content_type, WebPage.metadata, WebPage.fetch_time, WebPage.markers,
        WebPage.prev_fetch_time, WebPage.fetch_interval, WebPage.status,
    }
)  # fmt: skip


class PageTextReader:
    """Reads the text of pages as Markdown; without the extra ``main-text``, as plain text. Must be closed.

    One page is converted at a time, in the parser's process with its limits. The last text is kept: a model reads a
    long page in several parts.
    """

    def __init__(self, context: RestContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._renderer: MarkdownRenderer | None = None
        self._is_plain = False
        self._last: tuple[tuple[str, int], str] | None = None

    def read(self, arguments: PageArguments) -> PageText:
        """Return a part of a page; raise InputError when the crawl has no text of it."""
        with self._lock:
            renderer = self._open_renderer()
            url, page = read_row(self._context, arguments.url, _TEXT_FIELDS | (renderer.fields if renderer else set()))
            fetched = page_fetch_time(page)
            if self._last is None or self._last[0] != (url, fetched):
                text = renderer.render(url, page) if renderer else page.text
                self._last = (url, fetched), clean_page_text(text or "")
            text = self._last[1]
        if not text:
            status = page_explanation.status_label(page.status)
            raise InputError(f"the crawl has no text of {_show(url)} ({status}): explain_page says more")
        start, end = arguments.offset, arguments.offset + arguments.max_characters
        if start >= len(text):
            raise InputError(f"offset {start} is after the end: the page has {len(text)} characters")
        return PageText(
            url=_show(url),
            title=_cut(page.title or "", _MAX_TITLE),
            content_type=_cut(page.content_type or "", _MAX_TITLE),
            lang=_cut((page.metadata.get(LANGUAGE_KEY) or b"").decode("utf-8", "replace"), _MAX_TITLE),
            fetched=_iso_time(fetched),
            format="markdown" if renderer else "text",
            offset=start,
            total_characters=len(text),
            next_offset=end if end < len(text) else None,
            text=text[start:end],
        )

    def _open_renderer(self) -> MarkdownRenderer | None:
        if self._renderer is None and not self._is_plain:
            try:
                self._renderer = MarkdownRenderer(self._context.conf)
            except ConfigurationError:  # without the extra
                self._is_plain = True
        return self._renderer

    def close(self) -> None:
        """Stop the parser's process."""
        with self._lock:
            renderer, self._renderer, self._last = self._renderer, None, None
            if renderer is not None:
                renderer.close()


@dataclass(frozen=True)
class CrawlTools:
    """Services of the tools: those of the REST interface, and the text of pages."""

    authorizer: Authorizer
    text_reader: PageTextReader = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text_reader", PageTextReader(self.authorizer.context))

    @property
    def context(self) -> RestContext:
        """The services of the REST interface."""
        return self.authorizer.context

    def close(self) -> None:
        """Stop the parser's process."""
        self.text_reader.close()


@dataclass(frozen=True)
class ToolCall:
    """A validated call of a tool."""

    tools: CrawlTools
    caller: Caller
    args: Any

    @property
    def context(self) -> RestContext:
        """The services of the REST interface."""
        return self.tools.context


Handler = Callable[[ToolCall], Awaitable[ToolResult]]


@dataclass(frozen=True)
class CrawlTool:
    """A tool.

    Attributes:
        role: The least role that it requires.
        modifies: Whether it changes anything; then its calls are in the audit log.
        opens_world: Whether it sends requests to other servers.
    """

    name: str
    title: str
    description: str
    role: Role
    handler: Handler
    args_type: type[ToolArguments]
    result_type: type[ToolResult]
    modifies: bool = False
    opens_world: bool = False


def read_row(context: RestContext, url: str, fields: frozenset[RecordField]) -> tuple[str, WebPage]:
    """Return the row of a URL, also of one with an international host; raise InputError when there is none."""
    with context.open_crawl_reader("", "default") as reader:
        page = reader.page(url, fields)
        if page is None and (ascii_url := url_to_ascii(url)) not in (None, url):
            url, page = str(ascii_url), reader.page(str(ascii_url), fields)
    if page is None:
        raise InputError(f"the crawl has no page {_show(url)}: search finds the URLs of pages")
    return url, page


def _search(call: ToolCall) -> SearchAnswer:
    args: SearchArguments = call.args
    query = SearchQuery(
        q=args.query, rows=args.rows, cursor=args.cursor or "*", sort=args.sort, collapse="none",
        host=args.host, path=args.path, type=args.type, lang=args.lang, date=args.date,
    )  # fmt: skip
    found = search(ApiCall(call.context, call.caller, {}, query, None))
    hits = [
        FoundPage(
            url=_show(hit.url),
            title=_cut(hit.title, _MAX_TITLE),
            snippet=_cut(hit.snippet, _MAX_SNIPPET),
            host=clean_page_text(hit.host),
            lang=clean_page_text(hit.lang),
            date=hit.date,
            score=hit.score,
        )
        for hit in found.hits
    ]
    return SearchAnswer(
        total=found.total,
        hits=hits,
        cursor=found.cursor,
        corrected_query=found.corrected_query,
        is_corrected=found.is_corrected,
    )


def _get_page(call: ToolCall) -> PageText:
    return call.tools.text_reader.read(call.args)


def _explain_page(call: ToolCall) -> PageState:
    args: UrlArguments = call.args
    url, page = read_row(call.context, args.url, page_explanation.EXPLAINED_FIELDS)
    with call.context.open_crawl_reader("", "default") as reader:
        conf = run_configuration(reader.conf, reader.jobs(_MAX_LOG_ENTRIES))
    status, history = page_explanation.status_label(page.status), [*page_explanation.page_history(page)]
    inlinks = [url for url, _ in page.inlinks.decoded_items()]
    return PageState(
        url=_show(url),
        title=_cut(page.title or "", _MAX_TITLE),
        status=status,
        score=page.score,
        history=[
            JobEffect(job=each.job, description=_cut(each.description, _MAX_SNIPPET), batch_id=each.batch_id)
            for each in history
        ],
        inlinks=[_show(each) for each in sorted(inlinks)[:_MAX_LINKS]],
        inlink_count=len(inlinks),
        outlink_count=len(page.outlinks.decoded_items()),
        next_fetch=[*page_explanation.explain_due(url, page, conf, int(time.time() * 1000))],  # may change the row
    )


def _list_hosts(call: ToolCall) -> HostList:
    args: HostsArguments = call.args
    with call.context.open_crawl_reader("", "default") as reader:
        overview = reader.overview()
    if overview is None:
        return HostList(hosts=[], host_count=0, next_offset=None, counted=None)
    end = args.offset + args.limit
    return HostList(
        hosts=[
            HostCounts(host=_cut(each.host, _MAX_TITLE), pages=each.rows, fetched=each.fetched, errors=each.errors)
            for each in overview.hosts[args.offset : end]
        ],
        host_count=overview.host_count,
        next_offset=end if end < len(overview.hosts) else None,
        counted=_iso_time(overview.counted_at),
    )


def _get_statistics(call: ToolCall) -> CrawlAnswer:
    with call.context.open_crawl_reader("", "default") as reader:
        state = CrawlSnapshot.from_crawl(reader, _MAX_LOG_ENTRIES)
    stats, overview = state.table_stats, state.overview
    summary = summarize_crawl(stats, overview, state.rounds, state.entries)
    return CrawlAnswer(
        summary=[_cut(each, _MAX_SNIPPET) for each in summary],
        pages=stats.rows if stats else 0,
        due=stats.due if stats else None,
        by_status=dict(stats.status) if stats else {},
        by_protocol_status=dict(stats.protocol) if stats else {},
        host_count=overview.host_count if overview else 0,
        counted=_iso_time(stats.counted_at) if stats else None,
    )


def _list_jobs(call: ToolCall) -> JobList:
    args: JobsArguments = call.args
    jobs = (job for job in call.context.jobs.all() if not args.before or job.id < args.before)
    return JobList(jobs=[_job_summary(job) for job in islice(jobs, args.limit)])


async def _get_job(call: ToolCall) -> JobAnswer:
    """Return a job, at its end or after the time to wait; waiting occupies no thread."""
    args: JobArguments = call.args
    threads, jobs = call.tools.authorizer.thread_limit, call.context.jobs
    deadline = anyio.current_time() + args.wait_seconds
    while (await threads.run(jobs.get, args.job_id)).state.is_alive and anyio.current_time() < deadline:
        await anyio.sleep(_POLL_SECONDS)
    return await call.tools.authorizer.store_thread_limit.run(_read_job, call)


def _read_job(call: ToolCall) -> JobAnswer:
    args: JobArguments = call.args
    job = call.context.jobs.get(args.job_id)
    size = call.context.jobs.read_output(job.id, 0, 0)[1]
    output, _ = call.context.jobs.read_output(job.id, max(size - 4 * args.output_characters, 0), size)
    text = clean_page_text(output.decode("utf-8", "replace"))
    entries = call.context.job_log_entries(job)[-_MAX_STEPS:]
    return JobAnswer(
        job=_job_summary(job),
        steps=[
            JobStep(job=each.job, state=each.state, rows=each.rows, message=_cut(each.message, _MAX_SNIPPET))
            for each in entries
        ],
        output=text[-args.output_characters :] if args.output_characters else "",
    )


def _start_crawl(call: ToolCall) -> JobList:
    args: StartArguments = call.args
    limits = {name: value for name in ("depth", "minutes") if (value := getattr(args, name)) is not None}
    crawl_id = call.context.conf.get_trimmed("storage.crawl.id")
    values = {"crawlId": crawl_id, "seeds": args.seeds, "pages": args.pages, "stay": args.stay, **limits}
    request = msgspec.convert({"job": "crawl", **values}, CrawlRequest)
    return JobList(jobs=[_job_summary(call.context.start_job(request, call.caller))])


def _stop_job(call: ToolCall) -> JobList:
    args: StopArguments = call.args
    return JobList(jobs=[_job_summary(call.context.jobs.stop(args.job_id))])


def _job_summary(job: JobProcess) -> JobSummary:
    return JobSummary(
        id=job.id,
        job=job.job,
        state=job.state,
        started=_iso_time(job.start_time),
        finished=None if job.finish_time is None else _iso_time(job.finish_time),
        exit_code=job.exit_code,
        message=_cut(job.message, _MAX_SNIPPET),
    )


def _in_thread(work: Callable[[ToolCall], ToolResult], kind: Literal["store", "other"] = "store") -> Handler:
    """Return a handler that runs ``work`` in a thread, of those for stores or the others."""

    async def handle(call: ToolCall) -> ToolResult:
        authorizer = call.tools.authorizer
        threads = authorizer.store_thread_limit if kind == "store" else authorizer.thread_limit
        return await threads.run(work, call)

    return handle


def _iso_time(ms: int) -> str:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
    return ""


def _cut(text: str, limit: int) -> str:
    cleaned = clean_page_text(text)
    return cleaned if len(cleaned) <= limit else f"{cleaned[: limit - 1]}…"


def _show(url: str) -> str:
    return _cut(url, _MAX_URL)


TOOLS: tuple[CrawlTool, ...] = (
    CrawlTool(
        "search", "Search the crawl",
        "Searches the crawled pages. Returns titles, snippets and URLs; get_page reads a page.",
        Role.SEARCH, _in_thread(_search, "other"), SearchArguments, SearchAnswer,
    ),
    CrawlTool(
        "get_page", "Read a page", "Returns the main text of a crawled page as Markdown, in parts of bounded length.",
        Role.READ, _in_thread(_get_page), PageArguments, PageText,
    ),
    CrawlTool(
        "explain_page", "Explain a page",
        "Explains the state of a page in the crawl: status, what each job did to it, and when it is fetched next.",
        Role.READ, _in_thread(_explain_page), UrlArguments, PageState,
    ),
    CrawlTool(
        "list_hosts", "List hosts", "Lists the hosts of the crawl with their numbers of pages, the largest first.",
        Role.READ, _in_thread(_list_hosts), HostsArguments, HostList,
    ),
    CrawlTool(
        "get_statistics", "Statistics of the crawl", "Returns a summary of the crawl and its pages by status.",
        Role.READ, _in_thread(_get_statistics), NoArguments, CrawlAnswer,
    ),
    CrawlTool(
        "list_jobs", "List jobs", "Lists the jobs that this server started, newest first.",
        Role.READ, _in_thread(_list_jobs, "other"), JobsArguments, JobList,
    ),
    CrawlTool(
        "get_job", "Watch a job", "Returns the state, the steps and the end of the output of a job; can wait.",
        Role.READ, _get_job, JobArguments, JobAnswer,
    ),
    CrawlTool(
        "start_crawl", "Start a crawl",
        "Starts a crawl from seed URLs; get_job watches it. It requests pages of other servers.",
        Role.RUN, _in_thread(_start_crawl, "other"), StartArguments, JobList, modifies=True, opens_world=True,
    ),
    CrawlTool(
        "stop_job", "Stop a job", "Interrupts a running job at its next safe point.",
        Role.RUN, _in_thread(_stop_job, "other"), StopArguments, JobList, modifies=True,
    ),
)  # fmt: skip
"""All tools. A client sees those that its role may call."""
