"""What is asked for and answered, beside jobs themselves: the types of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from nutch2py.joblog.entry import JobEntry
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.overview import Overview
from nutch2py.rest.children import Child, ChildState
from nutch2py.rest.kinds import CrawlId, Name, PropertyName, PropertyValue

Text = Annotated[str, Meta(max_length=4096)]


class OfCrawl(Struct, rename="camel", kw_only=True, frozen=True):
    """Which crawl, by which stored configuration."""

    crawl_id: CrawlId = ""
    configuration: Name = "default"


class JobsAsked(Struct, rename="camel", kw_only=True, frozen=True):
    """Which jobs: of a crawl, in a state, begun before a job."""

    crawl_id: CrawlId | None = None
    state: ChildState | None = None
    before: Text = "~"
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class OutputAsked(Struct, kw_only=True, frozen=True):
    """Which part of an output, in bytes."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=1 << 20)] = 65_536


class Output(Struct, rename="camel", kw_only=True, frozen=True):
    """A part of what a job has printed. ``next``: the offset behind it; ``more``: there is or will be more."""

    text: str
    next: int
    more: bool


class JobDetail(Child, rename="camel", kw_only=True, frozen=True):
    """A job, with what the crawl's own log has of it: one entry, or one for each step of a whole crawl."""

    log: list[JobEntry] = field(default_factory=list)


class NewConfiguration(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Properties that are to be stored under an id; ``force`` replaces what is there."""

    id: Name
    properties: dict[PropertyName, PropertyValue] = field(default_factory=dict)
    force: bool = False


class StoredConfiguration(Struct, kw_only=True, frozen=True):
    """A configuration: all properties in force, secrets masked; ``own``: names of those that it sets itself."""

    id: str
    own: list[str]
    properties: dict[str, str]


class Value(Struct, forbid_unknown_fields=True, frozen=True):
    """The value of a property."""

    value: PropertyValue


class Batch(Struct, rename="camel", kw_only=True, frozen=True):
    """An open batch. ``time``: ms since 1970; ``count``: its rows, -1 when not known; ``done``: as far as ``state``."""

    id: str
    state: str
    time: int
    count: int
    done: int | None
    at_work: list[str]


class RowsAsked(OfCrawl, rename="camel", kw_only=True, frozen=True):
    """Which rows: that of ``url``, those of ``host``, or from key ``start`` up to ``stop``. ``fields``: by comma."""

    url: Text = ""
    host: Text = ""
    start: Text = ""
    stop: Text = ""
    fields: Text = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class Statistics(Struct, kw_only=True, frozen=True):
    """Numbers of a crawl's rows, and what jobs have seen of it as a whole; None where no job has kept them."""

    figures: Figures | None
    overview: Overview | None


class LogAsked(OfCrawl, rename="camel", kw_only=True, frozen=True):
    """Which entries of a crawl's job log: the newest, of those before an entry."""

    before: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class Health(Struct, kw_only=True, frozen=True):
    """That the server answers."""

    status: str
    version: str


class Deleted(Struct, kw_only=True, frozen=True):
    """What was deleted."""

    id: str
