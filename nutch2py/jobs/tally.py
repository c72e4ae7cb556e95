"""What jobs of a crawl have counted, summed: over the rounds of a command, or over entries of its log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from nutch2py.mapreduce.driver import JobResult

_FETCH, _PARSE, _UPDATE = "FetcherStatus", "ParserStatus", "updatedb"
_GOOD = ("SUCCESS", "NOTMODIFIED")
_MOVED = ("MOVED", "TEMP_MOVED")
_GONE = ("GONE", "NOTFOUND", "ACCESS_DENIED", "ROBOTS_DENIED", "ROBOTS_DENIED_MAXCRAWLDELAY")
_FAILED = ("EXCEPTION", "PROTO_NOT_FOUND")


@dataclass
class Tally:
    """Sums of counters by group and name. ``rounds``: those that were finished; ``left``: rows of the last generate.

    ``documents``: in the index at the end; ``ranks``: what became of PageRank, for people.
    """

    rounds: int = 0
    sums: JobResult = field(default_factory=JobResult)
    left: dict[str, int] = field(default_factory=dict)
    documents: int = 0
    ranks: str = ""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the crawl began."""
        return time.monotonic() - self.began

    def add(self, result: JobResult) -> None:
        """Add what a job counted."""
        self.sums.add_counters(result.counters)

    def fetched(self, name: str) -> int:
        """Return a counter of the fetches: of a protocol status, or ``exception_…``."""
        return self.sums.count(_FETCH, name)

    @property
    def bytes(self) -> int:
        """Bytes of content that came."""
        return self.fetched("bytes_downloaded")

    @property
    def good(self) -> int:
        """Pages that came, or are as they were."""
        return sum(map(self.fetched, _GOOD))

    @property
    def moved(self) -> int:
        """URLs that lead elsewhere."""
        return sum(map(self.fetched, _MOVED))

    @property
    def gone(self) -> int:
        """URLs without a page for us."""
        return sum(map(self.fetched, _GONE))

    @property
    def failed(self) -> int:
        """URLs that will be tried again."""
        return sum(map(self.fetched, _FAILED))

    def failures(self) -> dict[str, int]:
        """Return the failures by kind (:class:`nutch2py.fetcher.answer.FailureKind`); ``http``: by a status of HTTP."""
        kinds = {
            name.removeprefix("exception_"): count
            for name, count in self.sums.group(_FETCH).items()
            if name.startswith("exception_")
        }
        answered = self.failed - sum(kinds.values())
        return kinds | ({"http": answered} if answered > 0 else {})

    def in_a_line(self) -> str:
        """Return what came of the URLs, as ``4 fetched, 1 gone``."""
        parts = [(self.good, "fetched"), (self.moved, "redirected"), (self.gone, "gone or forbidden")]
        parts += [(self.failed, "failed")]
        return ", ".join(f"{count:,} {what}" for count, what in parts if count) or "nothing fetched"

    @property
    def links(self) -> tuple[int, int]:
        """Links found, and rows that were new with them."""
        return self.sums.count(_UPDATE, "links"), self.sums.count(_UPDATE, "rows_new")

    @property
    def unparsed(self) -> int:
        """Pages that no parser could read."""
        return self.sums.count(_PARSE, "failed")
