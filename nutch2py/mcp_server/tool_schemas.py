"""Arguments and results of the tools."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from nutch2py.mcp_server.untrusted_text import NOTICE
from nutch2py.rest.job_control.job_requests import SeedUrlString

MAX_PAGE_CHARACTERS = 50_000
"""Characters of a page in one answer."""
_Url = Annotated[str, Meta(min_length=1, max_length=4096, description="URL of a page")]
_Filter = Annotated[str, Meta(max_length=300)]
_Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_JobId = Annotated[
    str, Meta(min_length=1, max_length=64, description="id of a job that start_crawl or list_jobs returned")
]


class ToolArguments(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of the arguments."""


class ToolResult(Struct, rename="camel", kw_only=True, frozen=True):
    """Base of the results. ``notice``: warning about text of pages."""

    notice: str = NOTICE


class SearchArguments(ToolArguments, frozen=True, kw_only=True):
    """A query, with filters and the position of the first hit."""

    query: Annotated[str, Meta(min_length=1, max_length=1000, description='words; "a phrase", -excluded, title:word')]
    rows: Annotated[int, Meta(ge=1, le=20, description="hits of the answer")] = 10
    cursor: Annotated[str, Meta(max_length=2000, description="cursor of the previous answer: the hits after it")] = ""
    host: Annotated[_Filter, Meta(description="only this host and its subdomains")] = ""
    path: Annotated[_Filter, Meta(description="only this folder: www.example.org/docs/")] = ""
    type: Annotated[_Filter, Meta(description="media type, such as text/html or application/pdf")] = ""
    lang: Annotated[_Filter, Meta(description="language, such as en")] = ""
    date: Annotated[_Filter, Meta(description="year or month: 2026, 2026-11")] = ""
    sort: Literal["relevance", "date"] = "relevance"


class FoundPage(Struct, rename="camel", kw_only=True, frozen=True):
    """A hit. ``date``: of the page or its fetch; None when unknown."""

    url: str
    title: str
    snippet: str
    host: str
    lang: str
    date: str | None
    score: float


class SearchAnswer(ToolResult, frozen=True, kw_only=True):
    """Hits of ``total``. ``cursor``: for the next ones, None after the last. ``corrected_query``: "" for none."""

    total: int
    hits: list[FoundPage]
    cursor: str | None
    corrected_query: str
    is_corrected: bool


class PageArguments(ToolArguments, frozen=True, kw_only=True):
    """A page, and the part of its text to read."""

    url: _Url
    offset: Annotated[int, Meta(ge=0, le=2**31 - 1, description="first character: nextOffset of the last answer")] = 0
    max_characters: Annotated[int, Meta(ge=100, le=MAX_PAGE_CHARACTERS)] = 10_000


class PageText(ToolResult, frozen=True, kw_only=True):
    """A part of a page's text. ``format``: markdown or text; ``next_offset``: of the next part, None after the last.

    ``fetched``: time of the fetch, ISO 8601.
    """

    url: str
    title: str
    content_type: str
    lang: str
    fetched: str
    format: Literal["markdown", "text"]
    offset: int
    total_characters: int
    next_offset: int | None
    text: str


class UrlArguments(ToolArguments, frozen=True, kw_only=True):
    """A page."""

    url: _Url


class JobEffect(Struct, rename="camel", kw_only=True, frozen=True):
    """Effect of a job on a page."""

    job: str
    description: str
    batch_id: str


class PageState(ToolResult, frozen=True, kw_only=True):
    """State of a page in the crawl. ``inlinks``: at most ten pages that link to it."""

    url: str
    title: str
    status: str
    score: float
    next_fetch: list[str]
    history: list[JobEffect]
    inlinks: list[str]
    inlink_count: int
    outlink_count: int


class HostsArguments(ToolArguments, frozen=True, kw_only=True):
    """A part of the list of hosts."""

    offset: Annotated[int, Meta(ge=0, le=1000)] = 0
    limit: Annotated[int, Meta(ge=1, le=100)] = 50


class HostCounts(Struct, rename="camel", kw_only=True, frozen=True):
    """Pages of a host. ``errors``: gone, or to be retried."""

    host: str
    pages: int
    fetched: int
    errors: int


class HostList(ToolResult, frozen=True, kw_only=True):
    """Hosts with the most pages first, of ``host_count``. ``next_offset``: None after the last that is known.

    ``counted``: time of the count, ISO 8601; None when no job has counted yet.
    """

    hosts: list[HostCounts]
    host_count: int
    next_offset: int | None
    counted: str | None


class NoArguments(ToolArguments, frozen=True, kw_only=True):
    """No arguments."""


class CrawlAnswer(ToolResult, frozen=True, kw_only=True):
    """Statistics of the crawl. ``counted``: time of the counts, ISO 8601; None when no job has counted yet."""

    summary: list[str]
    pages: int
    due: int | None
    by_status: dict[str, int]
    by_protocol_status: dict[str, int]
    host_count: int
    counted: str | None


class JobsArguments(ToolArguments, frozen=True, kw_only=True):
    """A part of the list of jobs."""

    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    before: Annotated[str, Meta(max_length=64, description="only jobs older than this id")] = ""


class JobSummary(Struct, rename="camel", kw_only=True, frozen=True):
    """A job that this server started. Times are ISO 8601."""

    id: str
    job: str
    state: str
    started: str
    finished: str | None
    exit_code: int | None
    message: str


class JobList(ToolResult, frozen=True, kw_only=True):
    """Jobs, newest first."""

    jobs: list[JobSummary]


class JobArguments(ToolArguments, frozen=True, kw_only=True):
    """A job to watch."""

    job_id: _JobId
    wait_seconds: Annotated[float, Meta(ge=0, le=30, description="wait so long for the end of the job")] = 0
    output_characters: Annotated[int, Meta(ge=0, le=20_000, description="end of the output to return")] = 4000


class JobStep(Struct, rename="camel", kw_only=True, frozen=True):
    """An entry of the job log: a crawl has one per job of a round."""

    job: str
    state: str
    rows: int
    message: str


class JobAnswer(ToolResult, frozen=True, kw_only=True):
    """A job, its newest steps, and the end of its output."""

    job: JobSummary
    steps: list[JobStep]
    output: str


class StartArguments(ToolArguments, frozen=True, kw_only=True):
    """A crawl to start. It ends at the first limit that it reaches."""

    seeds: Annotated[list[SeedUrlString], Meta(min_length=1, max_length=100, description="URLs to start from")]
    pages: Annotated[_Count, Meta(description="pages to fetch at most")] = 100
    depth: Annotated[_Count, Meta(description="rounds, links from the seeds")] | None = None
    minutes: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    stay: Annotated[Literal["host", "domain", "path", "anywhere"], Meta(description="where links may lead")] = "host"


class StopArguments(ToolArguments, frozen=True, kw_only=True):
    """A job to stop."""

    job_id: _JobId
