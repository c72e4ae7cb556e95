"""Sums of the counters of jobs, over the rounds of a command or over entries of the job log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from nutch2py.fetcher.fetch_state import LOCAL_FAILURE_COUNTER
from nutch2py.mapreduce.driver import JobResult

_FETCH_GROUP, _PARSE_GROUP, _UPDATE_GROUP = "FetcherStatus", "ParserStatus", "updatedb"
_FETCHED_STATUSES = ("SUCCESS", "NOTMODIFIED")
_REDIRECT_STATUSES = ("MOVED", "TEMP_MOVED")
_GONE_STATUSES = ("GONE", "NOTFOUND", "ACCESS_DENIED", "ROBOTS_DENIED", "ROBOTS_DENIED_MAXCRAWLDELAY")
_ERROR_STATUSES = ("EXCEPTION", "PROTO_NOT_FOUND")
_FAILED_STATUSES = (
    *_ERROR_STATUSES, "FAILED", "RETRY", "REDIR_EXCEEDED", "NOTFETCHING", "WOULDBLOCK", "BLOCKED"
)  # fmt: skip


@dataclass
class CounterTotals:
    """Sums of counters by group and name.

    Attributes:
        rounds: Number of finished rounds.
        totals: The sums.
        generate_counters: Counters of the last generate.
        indexed_documents: Documents in the index at the end.
        rank_message: Message on the result of PageRank.
        started: Monotonic start time in seconds.
    """

    rounds: int = 0
    totals: JobResult = field(default_factory=JobResult)
    generate_counters: dict[str, int] = field(default_factory=dict)
    indexed_documents: int = 0
    rank_message: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the start of the crawl."""
        return time.monotonic() - self.started

    def add(self, result: JobResult) -> None:
        """Add the counters of a job."""
        self.totals.add_counters(result.counters)

    def get_fetch_counter(self, name: str) -> int:
        """Return a fetch counter: of a protocol status, or ``exception_…``."""
        return self.totals.count(_FETCH_GROUP, name)

    @property
    def downloaded_bytes(self) -> int:
        """Bytes of downloaded content."""
        return self.get_fetch_counter("bytes_downloaded")

    @property
    def fetched_count(self) -> int:
        """Pages that were fetched or not modified."""
        return sum(map(self.get_fetch_counter, _FETCHED_STATUSES))

    @property
    def redirected_count(self) -> int:
        """URLs that redirect."""
        return sum(map(self.get_fetch_counter, _REDIRECT_STATUSES))

    @property
    def gone_count(self) -> int:
        """URLs that are gone or forbidden."""
        return sum(map(self.get_fetch_counter, _GONE_STATUSES))

    @property
    def local_failure_count(self) -> int:
        """URLs that were not fetched for a reason of this machine or its configuration."""
        return self.get_fetch_counter(LOCAL_FAILURE_COUNTER)

    @property
    def failed_count(self) -> int:
        """URLs that will be retried."""
        return sum(map(self.get_fetch_counter, _FAILED_STATUSES))

    @property
    def attempted_count(self) -> int:
        """URLs with any result of a fetch."""
        return self.fetched_count + self.redirected_count + self.gone_count + self.unsuccessful_count

    @property
    def unsuccessful_count(self) -> int:
        """URLs that will be retried, whatever the cause."""
        return self.failed_count + self.local_failure_count

    def count_failures_by_kind(self) -> dict[str, int]:
        """Return the failures by kind (see ``FailureKind``); ``http``: error status of HTTP."""
        kinds = {
            name.removeprefix("exception_"): count
            for name, count in self.totals.group(_FETCH_GROUP).items()
            if name.startswith("exception_")
        }
        answered = sum(map(self.get_fetch_counter, _ERROR_STATUSES)) + self.local_failure_count - sum(kinds.values())
        return kinds | ({"http": answered} if answered > 0 else {})

    def format_summary(self) -> str:
        """Return a summary as ``4 fetched, 1 gone``."""
        parts = [
            (self.fetched_count, "fetched"),
            (self.redirected_count, "redirected"),
            (self.gone_count, "gone or forbidden"),
        ]
        parts += [(self.failed_count, "failed"), (self.local_failure_count, "failed locally")]
        return ", ".join(f"{count:,} {what}" for count, what in parts if count) or "nothing fetched"

    @property
    def link_counts(self) -> tuple[int, int]:
        """Number of links found, and of new rows for them."""
        return self.totals.count(_UPDATE_GROUP, "links"), self.totals.count(_UPDATE_GROUP, "rows_new")

    @property
    def unparsed_count(self) -> int:
        """Pages that no parser could parse."""
        return self.totals.count(_PARSE_GROUP, "failed")
