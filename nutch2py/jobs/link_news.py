"""What has become of the links of a crawl since ranks were made, and since all of it was indexed: by the job log.

Each updatedb counts the links that are new to the table and those that are gone; pagerank notes how many it has
counted. So nothing has to be read of the table, and nothing is kept that a kill could make wrong: of a job that did not
end well, or that the log does not know, it is not known what it did, and then everything counts as new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nutch2py.conf import Configuration
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.stored import read_entries
from nutch2py.mapreduce.parameters import REINDEX, SCORES
from nutch2py.table import DataStore, open_store
from nutch2py.webpage import BatchEntry

_AT_ONCE = 100  # entries
_OVERLAPPING = 100
"""Entries that are looked at before those that count: a job that began there may have ended after they had begun."""


@dataclass
class LinkNews:
    """``ranked``: links that the last pagerank counted, None when that is not known.

    ``since_ranks``, ``since_index``: links new or gone since then, and since all was indexed; None when it is not
    known. ``sent``: the index was told of the ranks. ``freed``: pages that are no duplicates any more, since all was
    indexed.
    """

    ranked: int | None = None
    since_ranks: int | None = 0
    since_index: int | None = 0
    sent: bool = False
    freed: int = 0

    @classmethod
    def of(cls, conf: Configuration) -> LinkNews:
        """Read it off the job log."""
        store = open_store(conf, BatchEntry)
        news = cls()
        at_ranks: JobEntry | None = None
        at_index: JobEntry | None = None
        beyond = 0
        for entry in _entries(store):
            ended = entry.state == JobState.FINISHED
            if entry.job == "updatedb":
                counts = entry.counters.get("updatedb", {})
                links = counts.get("links_new", 0) + counts.get("links_gone", 0) if ended else None
                news.since_ranks = _sum(news.since_ranks, links) if _is_after(entry, at_ranks) else news.since_ranks
                news.since_index = _sum(news.since_index, links) if _is_after(entry, at_index) else news.since_index
            elif entry.job == "dedup" and _is_after(entry, at_index):
                news.freed += entry.counters.get("DeduplicationJob", {}).get("freed", 0)
                news.since_index = news.since_index if ended else None
            elif ended and entry.job == "index" and entry.batch_id in (REINDEX, SCORES):
                news.sent |= at_ranks is None
                at_index = entry if at_index is None and entry.batch_id == REINDEX else at_index
            elif ended and entry.job == "pagerank" and at_ranks is None:
                at_ranks = entry
                news.ranked = entry.counters.get("pagerank", {}).get("links")
            beyond += at_ranks is not None and at_index is not None
            if beyond > _OVERLAPPING:
                break
        if news.ranked is None:
            news.since_ranks = None
        if at_index is None:
            news.since_index = None
        return news

    def is_more(self, share: float, since: int | None) -> bool:
        """Tell whether links have changed by more than a share of those that were ranked, as far as is known."""
        return since is None or self.ranked is None or since > share * self.ranked

    def told(self) -> str:
        """Return for people how many links have changed since ranks were made."""
        if self.ranked is None:
            return "no earlier ranks are known"
        if self.since_ranks is None:
            return "it is not known how many links have changed since ranks were made"
        percent = f" ({100 * self.since_ranks / self.ranked:.1f} %)" if self.ranked else ""
        return f"{self.since_ranks:,} links are new or gone since ranks were made of {self.ranked:,}{percent}"


def _is_after(entry: JobEntry, other: JobEntry | None) -> bool:
    """Tell whether a job that began before another one, or after it, was at work when that had begun already.

    Its links may have come behind what the other one had read.
    """
    return other is None or entry.state == JobState.RUNNING or (entry.ended or entry.seen) >= other.begun


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _entries(store: DataStore[BatchEntry]) -> Iterator[JobEntry]:
    """Yield the entries of the log, the newest first."""
    before: str | None = None
    while found := read_entries(store, _AT_ONCE, before):
        yield from found
        before = found[-1].id
