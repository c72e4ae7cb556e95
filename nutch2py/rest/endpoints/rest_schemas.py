"""Request and response types of ``/api/v1``, apart from jobs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.joblog.table_stats import TableStats
from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessState
from nutch2py.rest.job_control.job_requests import CrawlId, Identifier, PropertyName, PropertyValue

TextParam = Annotated[str, Meta(max_length=4096)]


class CrawlQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """Selects a crawl and a stored configuration."""

    crawl_id: CrawlId = ""
    configuration: Identifier = "default"


class ListQuery(Struct, kw_only=True, frozen=True):
    """Selects a page of a list: at most ``limit`` items with ids after ``after``; fewer when they are large."""

    after: TextParam = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class BatchesQuery(CrawlQuery, rename="camel", kw_only=True, frozen=True):
    """Selects a page of the open batches of a crawl: at most ``limit`` with ids after ``after``."""

    after: TextParam = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class JobsQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """Selects jobs by crawl, state and id. ``before``: only jobs older than this id."""

    crawl_id: CrawlId | None = None
    state: JobProcessState | None = None
    before: TextParam = "~"
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class OutputQuery(Struct, kw_only=True, frozen=True):
    """Selects a range of the output, in bytes."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=1 << 20)] = 65_536


class JobOutput(Struct, rename="camel", kw_only=True, frozen=True):
    """A range of a job's output. ``next_offset``: end of the range. ``has_more``: more output exists or may follow."""

    text: str
    next_offset: int
    has_more: bool


class JobDetail(JobProcess, rename="camel", kw_only=True, frozen=True):
    """A job with its job log entries: one, or one per job of the ``crawl`` command."""

    log_entries: list[JobEntry] = field(default_factory=list)


class NewConfiguration(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A configuration to store. ``force``: replace an existing one."""

    id: Identifier
    properties: dict[PropertyName, PropertyValue] = field(default_factory=dict)
    force: bool = False


class StoredConfiguration(Struct, kw_only=True, frozen=True):
    """A configuration with all effective properties, secrets masked. ``overrides``: names that it sets itself."""

    id: str
    overrides: list[str]
    properties: dict[str, str]


class PropertyBody(Struct, forbid_unknown_fields=True, frozen=True):
    """The value of a property."""

    value: PropertyValue


class OpenBatch(Struct, rename="camel", kw_only=True, frozen=True):
    """An open batch. ``time``: ms since 1970. ``count``: rows, -1 if unknown. ``done``: rows that reached ``state``."""

    id: str
    state: str
    time: int
    count: int
    done: int | None
    running_jobs: list[str]


class RowsQuery(CrawlQuery, rename="camel", kw_only=True, frozen=True):
    """Selects the row of ``url``, rows of ``host``, or keys from ``start`` to ``stop``. ``fields``: comma-separated."""

    url: TextParam = ""
    host: TextParam = ""
    start: TextParam = ""
    stop: TextParam = ""
    fields: TextParam = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class CrawlStatistics(Struct, rename="camel", kw_only=True, frozen=True):
    """Statistics of the table, and the overview of the last full scan; None if no job has stored them."""

    table_stats: TableStats | None
    overview: Overview | None


class LogQuery(CrawlQuery, rename="camel", kw_only=True, frozen=True):
    """Selects the newest job log entries. ``before``: only entries older than this id."""

    before: TextParam | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class HealthResponse(Struct, kw_only=True, frozen=True):
    """Health of the server."""

    status: str
    version: str


class DeleteResponse(Struct, kw_only=True, frozen=True):
    """Id of the deleted item."""

    id: str
