"""Changes of links since the last ranking, and since all documents were indexed, computed from the job log.

Each updatedb counts the links that are new and those that are gone; pagerank records how many it has ranked. So the
table need not be read, and there is no state that a kill could corrupt. A job that failed, or that the log does not
have, may have changed any number of links: then all links count as new.
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

_ENTRIES_PER_READ = 100
_MAX_OVERLAPPING_ENTRIES = 100
"""Number of older entries to check: a job that started there may have finished after the jobs that count."""


@dataclass
class LinkChanges:
    """Changes of links. None means unknown.

    ``ranked_links``: links that the last pagerank ranked. ``changed_since_ranks``, ``changed_since_index``: links that
    are new or gone since then, and since all documents were indexed. ``ranks_are_indexed``: the index has the ranks.
    ``freed_duplicates``: pages that are no longer duplicates, since all documents were indexed.
    """

    ranked_links: int | None = None
    changed_since_ranks: int | None = 0
    changed_since_index: int | None = 0
    ranks_are_indexed: bool = False
    freed_duplicates: int = 0

    @classmethod
    def from_job_log(cls, conf: Configuration) -> LinkChanges:
        """Compute the changes from the job log."""
        store = open_store(conf, DerivedRow)
        changes = cls()
        at_ranks: JobEntry | None = None
        at_index: JobEntry | None = None
        older_entries = 0
        for entry in _iter_entries(store):
            is_finished = entry.state == JobState.FINISHED
            if entry.job == "updatedb":
                counts = entry.counters.get("updatedb", {})
                links = counts.get("links_new", 0) + counts.get("links_gone", 0) if is_finished else None
                if _ran_after_start(entry, at_ranks):
                    changes.changed_since_ranks = _add_known(changes.changed_since_ranks, links)
                if _ran_after_start(entry, at_index):
                    changes.changed_since_index = _add_known(changes.changed_since_index, links)
            elif entry.job == "dedup" and _ran_after_start(entry, at_index):
                changes.freed_duplicates += entry.counters.get("DeduplicationJob", {}).get("freed", 0)
                changes.changed_since_index = changes.changed_since_index if is_finished else None
            elif is_finished and entry.job == "index" and entry.batch_id in (REINDEX, SCORES):
                changes.ranks_are_indexed |= at_ranks is None
                at_index = entry if at_index is None and entry.batch_id == REINDEX else at_index
            elif is_finished and entry.job == "pagerank" and at_ranks is None:
                at_ranks = entry
                changes.ranked_links = entry.counters.get("pagerank", {}).get("links")
            older_entries += at_ranks is not None and at_index is not None
            if older_entries > _MAX_OVERLAPPING_ENTRIES:
                break
        if changes.ranked_links is None:
            changes.changed_since_ranks = None
        if at_index is None:
            changes.changed_since_index = None
        return changes

    def exceeds_share(self, share: float, changed: int | None) -> bool:
        """Return whether the changed links exceed a share of the ranked ones; True if unknown."""
        return changed is None or self.ranked_links is None or changed > share * self.ranked_links

    def describe(self) -> str:
        """Return a text on the links that changed since the last ranking."""
        if self.ranked_links is None:
            return "no earlier ranks are known"
        if self.changed_since_ranks is None:
            return "the number of links changed since the last ranking is unknown"
        percent = f" ({100 * self.changed_since_ranks / self.ranked_links:.1f} %)" if self.ranked_links else ""
        return f"{self.changed_since_ranks:,} of {self.ranked_links:,} links{percent} changed since the last ranking"


def _ran_after_start(entry: JobEntry, other: JobEntry | None) -> bool:
    """Return whether a job was still running after the start of another one, or started later.

    The other job may then have missed its links.
    """
    return (
        other is None or entry.state == JobState.RUNNING or (entry.finish_time or entry.last_seen) >= other.start_time
    )


def _add_known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _iter_entries(store: DataStore[DerivedRow]) -> Iterator[JobEntry]:
    """Yield the entries of the log, newest first."""
    before: str | None = None
    while entries := read_entries(store, _ENTRIES_PER_READ, before):
        yield from entries
        before = entries[-1].id
