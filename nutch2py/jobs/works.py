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

from nutch2py.mapreduce.parameters import ALL, REINDEX

TABLE, VALUES, CHOICE, INDEX = "table", "values", "choice", "index"
ROUNDS = "rounds"
RANKS, DUPLICATES, HOSTS = "ranks", "duplicates", "hosts"
_BATCH = "batch "
_EVERY = "batch *"


class Work(NamedTuple):
    """What a job does: ``name`` as the command is called, what it has ``alone``, and what it has ``shared``.

    ``of_batch``: it has its batch alone, too; :meth:`on` names it.
    """

    name: str
    alone: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset({TABLE})
    of_batch: bool = False
    batch: str = ""

    def on(self, batch_id: str) -> Work:
        """Return the work on one batch, or on every one (``-all``)."""
        if not self.of_batch:
            return self._replace(batch=batch_id)
        thing = _EVERY if batch_id in (ALL, REINDEX) else _BATCH + batch_id
        return self._replace(batch=batch_id, alone=self.alone | {thing})

    @property
    def only_reads(self) -> bool:
        """Whether nothing is changed, so that no lock is needed."""
        return not (self.alone or self.shared)

    def also(self, *things: str) -> Work:
        """Return the work that has other things alone, too."""
        return self._replace(alone=self.alone | {*things})


CRAWL = Work("crawl", frozenset({ROUNDS}))  # from its first job to its last, each of which has a lock of its own
ALLOW = Work("crawl", frozenset({CHOICE}))  # what crawl itself does to rows
INJECT = Work("inject", frozenset({VALUES}))
GENERATE = Work("generate", frozenset({CHOICE}), of_batch=True)
FETCH = Work("fetch", of_batch=True)
FETCH_REDIRECTS = FETCH.also(VALUES, CHOICE)  # with http.redirect.max, which makes rows of the targets, of its batch
PARSE = Work("parse", of_batch=True)
PARSE_SITEMAPS = PARSE.also(VALUES)  # which makes rows of what they list
UPDATEDB = Work("updatedb", frozenset({VALUES}), of_batch=True)
INDEX_BATCH = Work("index", shared=frozenset({TABLE, INDEX}), of_batch=True)
INDEX_ALL = Work("index", frozenset({INDEX}))
INDEX_SCORES = Work("index", frozenset({INDEX, RANKS}))
CLEAN = Work("clean", frozenset({INDEX}))
DEDUP = Work("dedup", frozenset({DUPLICATES}))
PAGERANK = Work("pagerank", frozenset({RANKS}))
PAGERANK_SCORES = PAGERANK.also(VALUES)  # with pagerank.update.score
UPDATEHOSTDB = Work("updatehostdb", frozenset({HOSTS}))
IMPORTTABLE = Work("importtable", frozenset({TABLE}), shared=frozenset())
COPYTABLE = Work("copytable", frozenset({TABLE}), shared=frozenset())  # its target; of its source it only reads
DUEINDEX = Work("dueindex", frozenset({TABLE}), shared=frozenset())  # to begin or end keeping it
READ = Work("a reader", shared=frozenset())
"""Who only reads takes no lock: every job leaves each row whole at any time."""

FIGURES = frozenset(
    work.name for work in (ALLOW, INJECT, FETCH, PARSE, UPDATEDB, PAGERANK_SCORES, IMPORTTABLE, COPYTABLE)
)
"""Names of jobs after which ``readdb -stats`` may say something else; marks and what is derived is not counted."""
COUNTING = "readdb"
"""The name of the job that counts for it."""


def reader(name: str) -> Work:
    """Return the work of a command that reads many rows, and so has an entry in the job log."""
    return Work(name, shared=frozenset())


def touches_batch(things: Iterable[str], batch_id: str) -> bool:
    """Tell whether what a job has alone are rows of a batch."""
    return not {_BATCH + batch_id, _EVERY}.isdisjoint(things)


def meet(alone: frozenset[str], shared: frozenset[str], other_alone: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two jobs exclude each other, by what each has alone and what it shares."""
    return _touch(alone, other_alone) or not alone.isdisjoint(other) or not shared.isdisjoint(other_alone)


def _touch(one: frozenset[str], other: frozenset[str]) -> bool:
    if not one.isdisjoint(other):
        return True
    return (_EVERY in one and any(thing.startswith(_BATCH) for thing in other)) or (
        _EVERY in other and any(thing.startswith(_BATCH) for thing in one)
    )
