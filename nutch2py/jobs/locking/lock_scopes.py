"""Lock scopes: what each job locks, and so which jobs of a crawl exclude each other; docs/operations.md has the table.

Two jobs exclude each other when both use the same resource, unless both share it. The resources are:

- ``table``: the whole web table. Every job shares it; a job that replaces whole rows has it exclusively.
- ``batch ID``: the rows of a batch. ``-all`` is every batch, including one that generate is making.
- ``values``: values that a job computes from rows and writes later: scores, inlinks, distances, the existence of rows.
  Two such jobs would overwrite each other's changes.
- ``choice``: which rows are due and free.
- ``index``: jobs that send documents of a batch share it; a job that covers the whole index has it exclusively.
- ``rounds``: which job of a crawl runs next; the command ``crawl`` holds it for all of its jobs.
- ``ranks``, ``duplicates``, ``hosts``: what pagerank, dedup and updatehostdb write.

No resource covers the other cells. One job alone writes each of them, and it changes single cells: a fetch of one batch
and an updatedb of another may change the same row, but never the same cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nutch2py.mapreduce.job_parameters import ALL, REINDEX

TABLE_RESOURCE, VALUES_RESOURCE, CHOICE_RESOURCE, INDEX_RESOURCE = "table", "values", "choice", "index"
ROUNDS_RESOURCE = "rounds"
RANKS_RESOURCE, DUPLICATES_RESOURCE, HOSTS_RESOURCE = "ranks", "duplicates", "hosts"
_BATCH_PREFIX = "batch "
_EVERY_BATCH = "batch *"


class LockScope(NamedTuple):
    """The resources of a job. ``name`` is the command; ``exclusive`` and ``shared`` are its resources.

    ``locks_batch``: the job also locks its batch exclusively; :meth:`for_batch` adds it.
    """

    name: str
    exclusive: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset({TABLE_RESOURCE})
    locks_batch: bool = False
    batch: str = ""

    def for_batch(self, batch_id: str) -> LockScope:
        """Return the scope for one batch, or for every batch (``-all``)."""
        if not self.locks_batch:
            return self._replace(batch=batch_id)
        thing = _EVERY_BATCH if batch_id in (ALL, REINDEX) else _BATCH_PREFIX + batch_id
        return self._replace(batch=batch_id, exclusive=self.exclusive | {thing})

    @property
    def is_read_only(self) -> bool:
        """Whether the job changes nothing and so needs no lock."""
        return not (self.exclusive or self.shared)

    def with_exclusive(self, *resources: str) -> LockScope:
        """Return a scope with additional exclusive resources."""
        return self._replace(exclusive=self.exclusive | {*resources})


# crawl holds this from its first job to its last; each of the jobs has a lock of its own
CRAWL = LockScope("crawl", frozenset({ROUNDS_RESOURCE}))
RECHECK_ADDRESSES = LockScope("crawl", frozenset({CHOICE_RESOURCE}))  # changes of rows by crawl itself
INJECT = LockScope("inject", frozenset({VALUES_RESOURCE}))
GENERATE = LockScope("generate", frozenset({CHOICE_RESOURCE}), locks_batch=True)
FETCH = LockScope("fetch", locks_batch=True)
# with http.redirect.max, which creates rows of the batch for the targets
FETCH_REDIRECTS = FETCH.with_exclusive(VALUES_RESOURCE, CHOICE_RESOURCE)
PARSE = LockScope("parse", locks_batch=True)
PARSE_SITEMAPS = PARSE.with_exclusive(VALUES_RESOURCE)  # creates rows for the listed pages
UPDATEDB = LockScope("updatedb", frozenset({VALUES_RESOURCE}), locks_batch=True)
INDEX_BATCH = LockScope("index", shared=frozenset({TABLE_RESOURCE, INDEX_RESOURCE}), locks_batch=True)
INDEX_ALL = LockScope("index", frozenset({INDEX_RESOURCE}))
INDEX_SCORES = LockScope("index", frozenset({INDEX_RESOURCE, RANKS_RESOURCE}))
CLEAN = LockScope("clean", frozenset({INDEX_RESOURCE}))
DEDUP = LockScope("dedup", frozenset({DUPLICATES_RESOURCE}))
PAGERANK = LockScope("pagerank", frozenset({RANKS_RESOURCE}))
PAGERANK_SCORES = PAGERANK.with_exclusive(VALUES_RESOURCE)  # with pagerank.update.score
UPDATEHOSTDB = LockScope("updatehostdb", frozenset({HOSTS_RESOURCE}))
IMPORTTABLE = LockScope("importtable", frozenset({TABLE_RESOURCE}), shared=frozenset())
# for the target; the source is only read
COPYTABLE = LockScope("copytable", frozenset({TABLE_RESOURCE}), shared=frozenset())
DUEINDEX = LockScope("dueindex", frozenset({TABLE_RESOURCE}), shared=frozenset())  # to create or drop the index
READ = LockScope("a reader", shared=frozenset())
"""Readers take no lock: every job leaves each row consistent at any time."""

STATS_CHANGING_JOBS = frozenset(
    work.name for work in (RECHECK_ADDRESSES, INJECT, FETCH, PARSE, UPDATEDB, PAGERANK_SCORES, IMPORTTABLE, COPYTABLE)
)
"""Names of the jobs that can change the result of ``readdb -stats``, which counts neither marks nor derived data."""
STATS_JOB_NAME = "readdb"
"""Name of the job that counts these statistics."""


CHANGING_JOBS = frozenset(
    scope.name for scope in [*globals().values()] if isinstance(scope, LockScope) and not scope.is_read_only
)
"""Names of the jobs that change a crawl. All other entries of the job log are readers."""


def make_reader_scope(name: str) -> LockScope:
    """Return the scope of a command that reads many rows and therefore has an entry in the job log."""
    return LockScope(name, shared=frozenset())


def covers_batch(resources: Iterable[str], batch_id: str) -> bool:
    """Return whether exclusive resources include the rows of a batch."""
    return not {_BATCH_PREFIX + batch_id, _EVERY_BATCH}.isdisjoint(resources)


def scopes_conflict(
    exclusive: frozenset[str], shared: frozenset[str], other_exclusive: frozenset[str], other_shared: frozenset[str]
) -> bool:
    """Return whether two jobs exclude each other, given their exclusive and shared resources."""
    return (
        _overlap_exclusively(exclusive, other_exclusive)
        or not exclusive.isdisjoint(other_shared)
        or not shared.isdisjoint(other_exclusive)
    )


def _overlap_exclusively(one: frozenset[str], other: frozenset[str]) -> bool:
    if not one.isdisjoint(other):
        return True
    return (_EVERY_BATCH in one and any(thing.startswith(_BATCH_PREFIX) for thing in other)) or (
        _EVERY_BATCH in other and any(thing.startswith(_BATCH_PREFIX) for thing in one)
    )
