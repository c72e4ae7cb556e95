"""Job requests of the REST API: each job with its arguments, and the command line that runs it.

Arguments are numbers, choices and names of a narrow form. None is a file, an address or an option, so that no request
can inject an option into the command line.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

_PATTERN_END = r"$(?!\n)"
"""End of the string: in Python, unlike JSON Schema, ``$`` alone also matches before a final line feed."""
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*" + _PATTERN_END, max_length=64)]
CrawlId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?" + _PATTERN_END, max_length=64)]
BatchId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*|-all)" + _PATTERN_END, max_length=200)]
IndexBatchId = Annotated[
    str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*|-all|-reindex|-scores)" + _PATTERN_END, max_length=200)
]
NewBatchId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*)?" + _PATTERN_END, max_length=200)]
NonNegativeInt = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Days = Annotated[float, Meta(ge=-36_500, le=36_500)]
SeedUrlString = Annotated[
    str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9+.-]*://[^\x00-\x1f\x7f]*" + _PATTERN_END, max_length=4096)
]
SeedUrls = Annotated[list[SeedUrlString], Meta(max_length=10_000)]
PropertyName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,200}" + _PATTERN_END)]
PropertyValue = Annotated[str, Meta(pattern=r"^[^\x00-\x08\x0b-\x1f\ufffe\uffff]*" + _PATTERN_END, max_length=20_000)]
"""Text that XML can represent."""
SEEDS_FILE = "seeds.txt"
"""Seed file in the folder of a job; in command arguments a placeholder for its path."""


class JobRequest(Struct, tag_field="job", forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """Base of all requests: the crawl, a stored configuration and properties that override it."""

    crawl_id: CrawlId = ""
    configuration: Identifier = "default"
    properties: dict[PropertyName, PropertyValue] = field(default_factory=dict)

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        raise NotImplementedError


class SeededJobRequest(JobRequest, frozen=True, kw_only=True):
    """A job with seeds: URLs, a stored seed list, or both."""

    seeds: SeedUrls = field(default_factory=list)
    seed_list: Identifier | UnsetType = UNSET


class InjectRequest(SeededJobRequest, tag="inject", frozen=True, kw_only=True):
    """Inject seeds into the table."""

    overwrite: bool = False
    update: bool = False
    no_filter: bool = False
    no_normalize: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-overwrite": self.overwrite, "-update": self.update and not self.overwrite,
                 "-noFilter": self.no_filter, "-noNormalize": self.no_normalize}  # fmt: skip
        return ["inject", SEEDS_FILE, *_flag_args(flags)]


class GenerateRequest(JobRequest, tag="generate", frozen=True, kw_only=True):
    """Generate a batch of due URLs."""

    top_n: NonNegativeInt | UnsetType = UNSET
    add_days: Days = 0
    no_filter: bool = False
    no_norm: bool = False
    sitemap: bool = False
    batch_id: NewBatchId = ""

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-noFilter": self.no_filter, "-noNorm": self.no_norm, "-sitemap": self.sitemap}
        days = [f"--add-days={self.add_days:g}"] if self.add_days else []
        named = ["-batchId", self.batch_id] if self.batch_id else []
        limit = [] if self.top_n is UNSET else ["-topN", str(self.top_n)]
        return ["generate", *limit, *days, *named, *_flag_args(flags)]


class FetchRequest(JobRequest, tag="fetch", frozen=True, kw_only=True):
    """Fetch a batch."""

    batch_id: BatchId
    threads: NonNegativeInt = 0
    num_tasks: NonNegativeInt = 0
    resume: bool = False
    sitemap: bool = False
    stm_detect: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-resume": self.resume, "-sitemap": self.sitemap, "-stmDetect": self.stm_detect}
        numbers = [*_number_args("-threads", self.threads), *_number_args("-numTasks", self.num_tasks)]
        return ["fetch", self.batch_id, *numbers, *_flag_args(flags)]


class ParseJobRequest(JobRequest, tag="parse", frozen=True, kw_only=True):
    """Parse a batch."""

    batch_id: BatchId
    resume: bool = False
    force: bool = False
    sitemap: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-resume": self.resume, "-force": self.force, "-sitemap": self.sitemap}
        return ["parse", self.batch_id, *_flag_args(flags)]


class UpdateDbRequest(JobRequest, tag="updatedb", frozen=True, kw_only=True):
    """Update the table from a batch."""

    batch_id: BatchId

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["updatedb", self.batch_id]


class IndexRequest(JobRequest, tag="index", frozen=True, kw_only=True):
    """Index a batch. ``force``: delete documents without a limit (``indexer.delete.max.share``)."""

    batch_id: IndexBatchId
    force: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["index", self.batch_id, *_flag_args({"-force": self.force})]


class DedupRequest(JobRequest, tag="dedup", frozen=True, kw_only=True):
    """Mark duplicates."""

    group: Literal["none", "host", "domain"] | UnsetType = UNSET
    simhash: bool = False
    threshold: Annotated[int, Meta(ge=0, le=64)] | UnsetType = UNSET

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        group = [] if self.group is UNSET else ["-group", str(self.group)]
        threshold = [] if self.threshold is UNSET else ["-threshold", str(self.threshold)]
        return ["dedup", *group, *threshold, *_flag_args({"-simhash": self.simhash})]


class CleanRequest(JobRequest, tag="clean", frozen=True, kw_only=True):
    """Delete gone, redirected and duplicate documents from the index. ``force``: without a limit."""

    no_commit: bool = False
    force: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["clean", *_flag_args({"-noCommit": self.no_commit, "-force": self.force})]


class PageRankRequest(JobRequest, tag="pagerank", frozen=True, kw_only=True):
    """Compute the PageRank of every page."""

    iterations: NonNegativeInt = 0

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["pagerank", *_number_args("-iterations", self.iterations)]


class UpdateHostDbRequest(JobRequest, tag="updatehostdb", frozen=True, kw_only=True):
    """Update the host table."""

    link_db: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["updatehostdb", *_flag_args({"-linkDb": self.link_db})]


class ReadDbStatsRequest(JobRequest, tag="readdb", frozen=True, kw_only=True):
    """Count all rows by status; the output of the job has the counts."""

    sort: bool = False
    by: Annotated[list[Literal["host", "domain", "depth", "next", "error"]], Meta(max_length=5)] = field(
        default_factory=list
    )
    limit: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType = field(default=UNSET, name="most")
    quantiles: bool = False
    exact: bool = False
    json: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-sort": self.sort, "-quantiles": self.quantiles, "-exact": self.exact, "-json": self.json}
        by = ["-by", *dict.fromkeys(self.by)] if self.by else []
        most = [] if self.limit is UNSET else ["-most", str(self.limit)]
        return ["readdb", "-stats", *by, *most, *_flag_args(flags)]


class CheckTableRequest(JobRequest, tag="checktable", frozen=True):
    """Check the tables for damage."""

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["checktable"]


class CrawlRequest(SeededJobRequest, tag="crawl", frozen=True, kw_only=True):
    """Run rounds of all jobs until nothing is due or a limit is reached."""

    depth: NonNegativeInt | UnsetType = UNSET
    pages: Annotated[int, Meta(ge=1, le=2**31 - 1)] | UnsetType = UNSET
    minutes: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    stay: Literal["host", "domain", "path", "anywhere"] = "host"
    index: bool = True

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        limits = {"-depth": self.depth, "-pages": self.pages, "-time": self.minutes}
        args = [arg for name, value in limits.items() if value is not UNSET for arg in (name, str(value))]
        return ["crawl", SEEDS_FILE, *args, "-stay", self.stay, *([] if self.index else ["-index", "none"])]


AnyJobRequest = (
    InjectRequest | GenerateRequest | FetchRequest | ParseJobRequest | UpdateDbRequest | IndexRequest | DedupRequest
    | CleanRequest | PageRankRequest | UpdateHostDbRequest | ReadDbStatsRequest | CheckTableRequest | CrawlRequest
)  # fmt: skip


def _flag_args(flags: dict[str, bool]) -> list[str]:
    return [name for name, value in flags.items() if value]


def _number_args(option: str, number: int) -> list[str]:
    return [option, str(number)] if number else []
