"""What jobs can be asked for: each kind with its arguments, and the words of the command that does it.

Arguments are numbers, choices and names of a narrow form. None is a file, an address or an option, so that no request
can make words that mean something else to the command.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

_END = r"$(?!\n)"
"""The end of a text: ``$`` alone stands before a last line feed, too, in Python and not in JSON Schema."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*" + _END, max_length=64)]
CrawlId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?" + _END, max_length=64)]
BatchId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*|-all)" + _END, max_length=200)]
IndexedBatchId = Annotated[
    str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*|-all|-reindex|-scores)" + _END, max_length=200)
]
NewBatchId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*)?" + _END, max_length=200)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Days = Annotated[float, Meta(ge=-36_500, le=36_500)]
Url = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9+.-]*://[^\x00-\x1f\x7f]*" + _END, max_length=4096)]
Urls = Annotated[list[Url], Meta(max_length=10_000)]
PropertyName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,200}" + _END)]
PropertyValue = Annotated[str, Meta(pattern=r"^[^\x00-\x08\x0b-\x1f\ufffe\uffff]*" + _END, max_length=20_000)]
"""What an XML file can hold."""
SEEDS = "seeds.txt"
"""The file of seeds in the folder of a job; it stands for itself in the words of a job."""


class Request(Struct, tag_field="job", forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """What is common to all kinds: the crawl, a stored configuration, and properties that go before it."""

    crawl_id: CrawlId = ""
    configuration: Name = "default"
    properties: dict[PropertyName, PropertyValue] = field(default_factory=dict)

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        raise NotImplementedError


class Seeded(Request, frozen=True, kw_only=True):
    """A job with seeds: URLs, or a list of them that is stored."""

    seeds: Urls = field(default_factory=list)
    seed_list: Name | UnsetType = UNSET


class Inject(Seeded, tag="inject", frozen=True, kw_only=True):
    """Put seeds into the table."""

    overwrite: bool = False
    update: bool = False
    no_filter: bool = False
    no_normalize: bool = False

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-overwrite": self.overwrite, "-update": self.update and not self.overwrite,
                 "-noFilter": self.no_filter, "-noNormalize": self.no_normalize}  # fmt: skip
        return ["inject", SEEDS, *_set(flags)]


class Generate(Request, tag="generate", frozen=True, kw_only=True):
    """Make a batch of what is due."""

    top_n: Count = 0
    add_days: Days = 0
    no_filter: bool = False
    no_norm: bool = False
    sitemap: bool = False
    batch_id: NewBatchId = ""

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-noFilter": self.no_filter, "-noNorm": self.no_norm, "-sitemap": self.sitemap}
        days = [f"--add-days={self.add_days:g}"] if self.add_days else []
        named = ["-batchId", self.batch_id] if self.batch_id else []
        return ["generate", *_count("-topN", self.top_n), *days, *named, *_set(flags)]


class Fetch(Request, tag="fetch", frozen=True, kw_only=True):
    """Fetch a batch."""

    batch_id: BatchId
    threads: Count = 0
    num_tasks: Count = 0
    resume: bool = False
    sitemap: bool = False
    stm_detect: bool = False

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-resume": self.resume, "-sitemap": self.sitemap, "-stmDetect": self.stm_detect}
        return ["fetch", self.batch_id, *_count("-threads", self.threads), *_count("-numTasks", self.num_tasks),
                *_set(flags)]  # fmt: skip


class Parse(Request, tag="parse", frozen=True, kw_only=True):
    """Parse a batch."""

    batch_id: BatchId
    resume: bool = False
    force: bool = False
    sitemap: bool = False

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-resume": self.resume, "-force": self.force, "-sitemap": self.sitemap}
        return ["parse", self.batch_id, *_set(flags)]


class UpdateDb(Request, tag="updatedb", frozen=True, kw_only=True):
    """Take what a batch found into the table."""

    batch_id: BatchId

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        return ["updatedb", self.batch_id]


class Index(Request, tag="index", frozen=True, kw_only=True):
    """Send a batch to the index."""

    batch_id: IndexedBatchId

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        return ["index", self.batch_id]


class Dedup(Request, tag="dedup", frozen=True, kw_only=True):
    """Mark duplicates."""

    group: Literal["none", "host", "domain"] | UnsetType = UNSET
    simhash: bool = False
    threshold: Annotated[int, Meta(ge=0, le=64)] | UnsetType = UNSET

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        group = [] if self.group is UNSET else ["-group", str(self.group)]
        threshold = [] if self.threshold is UNSET else ["-threshold", str(self.threshold)]
        return ["dedup", *group, *threshold, *_set({"-simhash": self.simhash})]


class Clean(Request, tag="clean", frozen=True, kw_only=True):
    """Delete from the index what is gone, redirected or duplicate."""

    no_commit: bool = False

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        return ["clean", *_set({"-noCommit": self.no_commit})]


class PageRank(Request, tag="pagerank", frozen=True, kw_only=True):
    """Compute the PageRank of every page."""

    iterations: Count = 0

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        return ["pagerank", *_count("-iterations", self.iterations)]


class UpdateHostDb(Request, tag="updatehostdb", frozen=True, kw_only=True):
    """Count the pages of every host."""

    link_db: bool = False

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        return ["updatehostdb", *_set({"-linkDb": self.link_db})]


class ReadDb(Request, tag="readdb", frozen=True, kw_only=True):
    """Count all rows by status; what is counted is in the output."""

    sort: bool = False
    by: Annotated[list[Literal["host", "domain", "depth", "next", "error"]], Meta(max_length=5)] = field(
        default_factory=list
    )
    most: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType = UNSET
    quantiles: bool = False
    exact: bool = False
    json: bool = False

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        flags = {"-sort": self.sort, "-quantiles": self.quantiles, "-exact": self.exact, "-json": self.json}
        by = ["-by", *dict.fromkeys(self.by)] if self.by else []
        most = [] if self.most is UNSET else ["-most", str(self.most)]
        return ["readdb", "-stats", *by, *most, *_set(flags)]


class CheckTable(Request, tag="checktable", frozen=True):
    """Look for damage in the tables."""

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        return ["checktable"]


class Crawl(Seeded, tag="crawl", frozen=True, kw_only=True):
    """A whole crawl: rounds of all jobs, until nothing is due or a limit is reached."""

    depth: Count | UnsetType = UNSET
    pages: Annotated[int, Meta(ge=1, le=2**31 - 1)] | UnsetType = UNSET
    minutes: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    stay: Literal["host", "domain", "path", "anywhere"] = "host"
    index: bool = True

    def words(self) -> list[str]:
        """Return the command and its arguments."""
        limits = {"-depth": self.depth, "-pages": self.pages, "-time": self.minutes}
        given = [word for name, value in limits.items() if value is not UNSET for word in (name, str(value))]
        return ["crawl", SEEDS, *given, "-stay", self.stay, *([] if self.index else ["-index", "none"])]


AnyRequest = (
    Inject | Generate | Fetch | Parse | UpdateDb | Index | Dedup | Clean | PageRank | UpdateHostDb | ReadDb | CheckTable
    | Crawl
)  # fmt: skip


def _set(flags: dict[str, bool]) -> list[str]:
    return [name for name, value in flags.items() if value]


def _count(option: str, number: int) -> list[str]:
    return [option, str(number)] if number else []
