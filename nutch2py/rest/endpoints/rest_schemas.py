"""What is asked for and answered, beside jobs themselves: the types of the OpenAPI document."""

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
    """Which crawl, by which stored configuration."""

    crawl_id: CrawlId = ""
    configuration: Identifier = "default"


class JobsQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """Which jobs: of a crawl, in a state, begun before a job."""

    crawl_id: CrawlId | None = None
    state: JobProcessState | None = None
    before: TextParam = "~"
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class OutputQuery(Struct, kw_only=True, frozen=True):
    """Which part of an output, in bytes."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=1 << 20)] = 65_536


class JobOutput(Struct, rename="camel", kw_only=True, frozen=True):
    """A part of what a job has printed. ``next_offset``: the offset behind it; ``has_more``: there is or will be more."""

    text: str
    next_offset: int
    has_more: bool


class JobDetail(JobProcess, rename="camel", kw_only=True, frozen=True):
    """A job, with what the crawl's own log has of it: one entry, or one for each step of a whole crawl."""

    log_entries: list[JobEntry] = field(default_factory=list)


class NewConfiguration(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Properties that are to be stored under an id; ``force`` replaces what is there."""

    id: Identifier
    properties: dict[PropertyName, PropertyValue] = field(default_factory=dict)
    force: bool = False


class StoredConfiguration(Struct, kw_only=True, frozen=True):
    """A configuration: all properties in force, secrets masked; ``overrides``: names of those that it sets itself."""

    id: str
    overrides: list[str]
    properties: dict[str, str]


class PropertyBody(Struct, forbid_unknown_fields=True, frozen=True):
    """The value of a property."""

    value: PropertyValue


class OpenBatch(Struct, rename="camel", kw_only=True, frozen=True):
    """An open batch. ``time``: ms since 1970; ``count``: its rows, -1 when not known; ``done``: as far as ``state``."""

    id: str
    state: str
    time: int
    count: int
    done: int | None
    running_jobs: list[str]


class RowsQuery(CrawlQuery, rename="camel", kw_only=True, frozen=True):
    """Which rows: that of ``url``, those of ``host``, or from key ``start`` up to ``stop``. ``fields``: by comma."""

    url: TextParam = ""
    host: TextParam = ""
    start: TextParam = ""
    stop: TextParam = ""
    fields: TextParam = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class CrawlStatistics(Struct, kw_only=True, frozen=True):
    """Numbers of a crawl's rows, and what jobs have seen of it as a whole; None where no job has kept them."""

    table_stats: TableStats | None
    overview: Overview | None


class LogQuery(CrawlQuery, rename="camel", kw_only=True, frozen=True):
    """Which entries of a crawl's job log: the newest, of those before an entry."""

    before: TextParam | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class HealthResponse(Struct, kw_only=True, frozen=True):
    """That the server answers."""

    status: str
    version: str


class DeleteResponse(Struct, kw_only=True, frozen=True):
    """What was deleted."""

    id: str
