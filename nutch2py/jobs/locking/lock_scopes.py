"""What each job works on, and so which jobs may run on a crawl at the same time; docs/operations.md shows the table.

Two jobs exclude each other when both work on the same thing, unless both share it. The things are:

- ``table``: all of it; every job shares it, and who replaces rows as a whole has it alone.
- ``batch ID``: the rows of a batch. ``-all`` is every batch, also one that generate is making.
- ``values``: what is computed of rows and written later, as it was computed: scores, inlinks, distances, whether a row
  is there. Two who do so would lose each other's changes.
- ``choice``: which rows are due and free.
- ``index``: those who send documents of a batch share it; who decides over all of it has it alone.
- ``rounds``: which job of a whole crawl comes next; the command ``crawl`` has it for all of its jobs.
- ``ranks``, ``duplicates``, ``hosts``: what pagerank, dedup and updatehostdb write.

Cells that none of these names are written by one job only, and changed one by one: a fetch of a batch and an updatedb
of another may meet in a row, and neither writes what the other does.
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
    """What a job does: ``name`` as the command is called, what it has ``exclusive``, and what it has ``shared``.

    ``locks_batch``: it has its batch alone, too; :meth:`for_batch` names it.
    """

    name: str
    exclusive: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset({TABLE_RESOURCE})
    locks_batch: bool = False
    batch: str = ""

    def for_batch(self, batch_id: str) -> LockScope:
        """Return the work on one batch, or on every one (``-all``)."""
        if not self.locks_batch:
            return self._replace(batch=batch_id)
        thing = _EVERY_BATCH if batch_id in (ALL, REINDEX) else _BATCH_PREFIX + batch_id
        return self._replace(batch=batch_id, exclusive=self.exclusive | {thing})

    @property
    def is_read_only(self) -> bool:
        """Whether nothing is changed, so that no lock is needed."""
        return not (self.exclusive or self.shared)

    def with_exclusive(self, *resources: str) -> LockScope:
        """Return the work that has other things alone, too."""
        return self._replace(exclusive=self.exclusive | {*resources})


CRAWL = LockScope(
    "crawl", frozenset({ROUNDS_RESOURCE})
)  # from its first job to its last, each of which has a lock of its own
RECHECK_ADDRESSES = LockScope("crawl", frozenset({CHOICE_RESOURCE}))  # what crawl itself does to rows
INJECT = LockScope("inject", frozenset({VALUES_RESOURCE}))
GENERATE = LockScope("generate", frozenset({CHOICE_RESOURCE}), locks_batch=True)
FETCH = LockScope("fetch", locks_batch=True)
FETCH_REDIRECTS = FETCH.with_exclusive(
    VALUES_RESOURCE, CHOICE_RESOURCE
)  # with http.redirect.max, which makes rows of the targets, of its batch
PARSE = LockScope("parse", locks_batch=True)
PARSE_SITEMAPS = PARSE.with_exclusive(VALUES_RESOURCE)  # which makes rows of what they list
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
COPYTABLE = LockScope(
    "copytable", frozenset({TABLE_RESOURCE}), shared=frozenset()
)  # its target; of its source it only reads
DUEINDEX = LockScope("dueindex", frozenset({TABLE_RESOURCE}), shared=frozenset())  # to begin or end keeping it
READ = LockScope("a reader", shared=frozenset())
"""Who only reads takes no lock: every job leaves each row whole at any time."""

STATS_CHANGING_JOBS = frozenset(
    work.name for work in (RECHECK_ADDRESSES, INJECT, FETCH, PARSE, UPDATEDB, PAGERANK_SCORES, IMPORTTABLE, COPYTABLE)
)
"""Names of jobs after which ``readdb -stats`` may say something else; marks and what is derived is not counted."""
STATS_JOB_NAME = "readdb"
"""The name of the job that counts for it."""


def make_reader_scope(name: str) -> LockScope:
    """Return the work of a command that reads many rows, and so has an entry in the job log."""
    return LockScope(name, shared=frozenset())


def covers_batch(resources: Iterable[str], batch_id: str) -> bool:
    """Tell whether what a job has alone are rows of a batch."""
    return not {_BATCH_PREFIX + batch_id, _EVERY_BATCH}.isdisjoint(resources)


def scopes_conflict(
    exclusive: frozenset[str], shared: frozenset[str], other_exclusive: frozenset[str], other_shared: frozenset[str]
) -> bool:
    """Tell whether two jobs exclude each other, by what each has alone and what it shares."""
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
