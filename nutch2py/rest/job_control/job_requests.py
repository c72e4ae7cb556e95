"""What jobs can be asked for: each kind with its arguments, and the words of the command that does it.

Arguments are numbers, choices and names of a narrow form. None is a file, an address or an option, so that no request
can make words that mean something else to the command.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

_PATTERN_END = r"$(?!\n)"
"""The end of a text: ``$`` alone stands before a last line feed, too, in Python and not in JSON Schema."""
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
"""What an XML file can hold."""
SEEDS_FILE = "seeds.txt"
"""The file of seeds in the folder of a job; it stands for itself in the words of a job."""


class JobRequest(Struct, tag_field="job", forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """What is common to all kinds: the crawl, a stored configuration, and properties that go before it."""

    crawl_id: CrawlId = ""
    configuration: Identifier = "default"
    properties: dict[PropertyName, PropertyValue] = field(default_factory=dict)

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        raise NotImplementedError


class SeededJobRequest(JobRequest, frozen=True, kw_only=True):
    """A job with seeds: URLs, or a list of them that is stored."""

    seeds: SeedUrls = field(default_factory=list)
    seed_list: Identifier | UnsetType = UNSET


class InjectRequest(SeededJobRequest, tag="inject", frozen=True, kw_only=True):
    """Put seeds into the table."""

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
    """Make a batch of what is due."""

    top_n: NonNegativeInt = 0
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
        return ["generate", *_number_args("-topN", self.top_n), *days, *named, *_flag_args(flags)]


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
        return ["fetch", self.batch_id, *_number_args("-threads", self.threads), *_number_args("-numTasks", self.num_tasks),
                *_flag_args(flags)]  # fmt: skip


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
    """Take what a batch found into the table."""

    batch_id: BatchId

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["updatedb", self.batch_id]


class IndexRequest(JobRequest, tag="index", frozen=True, kw_only=True):
    """Send a batch to the index."""

    batch_id: IndexBatchId

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["index", self.batch_id]


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
    """Delete from the index what is gone, redirected or duplicate."""

    no_commit: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["clean", *_flag_args({"-noCommit": self.no_commit})]


class PageRankRequest(JobRequest, tag="pagerank", frozen=True, kw_only=True):
    """Compute the PageRank of every page."""

    iterations: NonNegativeInt = 0

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["pagerank", *_number_args("-iterations", self.iterations)]


class UpdateHostDbRequest(JobRequest, tag="updatehostdb", frozen=True, kw_only=True):
    """Count the pages of every host."""

    link_db: bool = False

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["updatehostdb", *_flag_args({"-linkDb": self.link_db})]


class ReadDbStatsRequest(JobRequest, tag="readdb", frozen=True, kw_only=True):
    """Count all rows by status; what is counted is in the output."""

    sort: bool = False
    by: Annotated[list[Literal["host", "domain", "depth", "next", "error"]], Meta(max_length=5)] = field(
        default_factory=list
    )
    limit: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType = UNSET
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
    """Look for damage in the tables."""

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        return ["checktable"]


class CrawlRequest(SeededJobRequest, tag="crawl", frozen=True, kw_only=True):
    """A whole crawl: rounds of all jobs, until nothing is due or a limit is reached."""

    depth: NonNegativeInt | UnsetType = UNSET
    pages: Annotated[int, Meta(ge=1, le=2**31 - 1)] | UnsetType = UNSET
    minutes: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    stay: Literal["host", "domain", "path", "anywhere"] = "host"
    index: bool = True

    def command_args(self) -> list[str]:
        """Return the command and its arguments."""
        limits = {"-depth": self.depth, "-pages": self.pages, "-time": self.minutes}
        given = [word for name, value in limits.items() if value is not UNSET for word in (name, str(value))]
        return ["crawl", SEEDS_FILE, *given, "-stay", self.stay, *([] if self.index else ["-index", "none"])]


AnyJobRequest = (
    InjectRequest | GenerateRequest | FetchRequest | ParseJobRequest | UpdateDbRequest | IndexRequest | DedupRequest | CleanRequest | PageRankRequest | UpdateHostDbRequest | ReadDbStatsRequest | CheckTableRequest
    | CrawlRequest
)  # fmt: skip


def _flag_args(flags: dict[str, bool]) -> list[str]:
    return [name for name, value in flags.items() if value]


def _number_args(option: str, number: int) -> list[str]:
    return [option, str(number)] if number else []
