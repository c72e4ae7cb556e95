"""What has become of the links of a crawl since ranks were made, and since all of it was indexed: by the job log.

Each updatedb counts the links that are new to the table and those that are gone; pagerank notes how many it has
counted. So nothing has to be read of the table, and nothing is kept that a kill could make wrong: of a job that did not
end well, or that the log does not know, it is not known what it did, and then everything counts as new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.mapreduce.job_parameters import REINDEX, SCORES
from nutch2py.records.webpage import DerivedRow
from nutch2py.table import DataStore, open_store

_ENTRIES_PER_READ = 100  # entries
_MAX_OVERLAPPING_ENTRIES = 100
"""Entries that are looked at before those that count: a job that began there may have ended after they had begun."""


@dataclass
class LinkChanges:
    """``ranked_links``: links that the last pagerank counted, None when that is not known.

    ``changed_since_ranks``, ``changed_since_index``: links new or gone since then, and since all was indexed; None when it is not
    known. ``ranks_are_indexed``: the index was told of the ranks. ``freed_duplicates``: pages that are no duplicates any more, since all was
    indexed.
    """

    ranked_links: int | None = None
    changed_since_ranks: int | None = 0
    changed_since_index: int | None = 0
    ranks_are_indexed: bool = False
    freed_duplicates: int = 0

    @classmethod
    def from_job_log(cls, conf: Configuration) -> LinkChanges:
        """Read it off the job log."""
        store = open_store(conf, DerivedRow)
        news = cls()
        at_ranks: JobEntry | None = None
        at_index: JobEntry | None = None
        beyond = 0
        for entry in _iter_entries(store):
            ended = entry.state == JobState.FINISHED
            if entry.job == "updatedb":
                counts = entry.counters.get("updatedb", {})
                links = counts.get("links_new", 0) + counts.get("links_gone", 0) if ended else None
                news.changed_since_ranks = (
                    _add_known(news.changed_since_ranks, links)
                    if _ran_after_start(entry, at_ranks)
                    else news.changed_since_ranks
                )
                news.changed_since_index = (
                    _add_known(news.changed_since_index, links)
                    if _ran_after_start(entry, at_index)
                    else news.changed_since_index
                )
            elif entry.job == "dedup" and _ran_after_start(entry, at_index):
                news.freed_duplicates += entry.counters.get("DeduplicationJob", {}).get("freed", 0)
                news.changed_since_index = news.changed_since_index if ended else None
            elif ended and entry.job == "index" and entry.batch_id in (REINDEX, SCORES):
                news.ranks_are_indexed |= at_ranks is None
                at_index = entry if at_index is None and entry.batch_id == REINDEX else at_index
            elif ended and entry.job == "pagerank" and at_ranks is None:
                at_ranks = entry
                news.ranked_links = entry.counters.get("pagerank", {}).get("links")
            beyond += at_ranks is not None and at_index is not None
            if beyond > _MAX_OVERLAPPING_ENTRIES:
                break
        if news.ranked_links is None:
            news.changed_since_ranks = None
        if at_index is None:
            news.changed_since_index = None
        return news

    def exceeds_share(self, share: float, changed: int | None) -> bool:
        """Tell whether links have changed by more than a share of those that were ranked, as far as is known."""
        return changed is None or self.ranked_links is None or changed > share * self.ranked_links

    def describe(self) -> str:
        """Return for people how many links have changed since ranks were made."""
        if self.ranked_links is None:
            return "no earlier ranks are known"
        if self.changed_since_ranks is None:
            return "it is not known how many links have changed since ranks were made"
        percent = f" ({100 * self.changed_since_ranks / self.ranked_links:.1f} %)" if self.ranked_links else ""
        return f"{self.changed_since_ranks:,} links are new or gone since ranks were made of {self.ranked_links:,}{percent}"


def _ran_after_start(entry: JobEntry, other: JobEntry | None) -> bool:
    """Tell whether a job that began before another one, or after it, was at work when that had begun already.

    Its links may have come behind what the other one had read.
    """
    return (
        other is None or entry.state == JobState.RUNNING or (entry.finish_time or entry.last_seen) >= other.start_time
    )


def _add_known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _iter_entries(store: DataStore[DerivedRow]) -> Iterator[JobEntry]:
    """Yield the entries of the log, the newest first."""
    before: str | None = None
    while found := read_entries(store, _ENTRIES_PER_READ, before):
        yield from found
        before = found[-1].id
