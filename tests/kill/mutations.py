"""Defects made on purpose: what each breaks, and how the text of the package is changed for it.

They are applied to a copy of the package, which the struck crawls then run; the harness has to find each. A change
whose text does not occur exactly once fails: the code has moved, and the mutation has to follow it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Change(NamedTuple):
    """One replacement in a file of the package."""

    file: str
    old: str
    new: str


class Mutation(NamedTuple):
    """A defect.

    Attributes:
        name: Its name on the command line.
        does: Its effect.
        shows: Jobs, one of which has to be struck for the effect to show.
        violates: The invariants that it violates (:data:`tests.kill.invariants.INVARIANTS`); a schedule that fails by
            another one has found something else.
        changes: The changes of the package.
    """

    name: str
    does: str
    shows: tuple[str, ...]
    violates: tuple[str, ...]
    changes: tuple[Change, ...]


MUTATIONS = {
    mutation.name: mutation
    for mutation in (
        Mutation(
            "flush-order",
            "parse writes the pages before the notes of the links that they have lost",
            ("parse",),
            ("links",),
            (Change("jobs/parse_job.py", "self.write_batch(before_write=side.flush)", "self.write_batch()"),),
        ),
        Mutation(
            "due-twice",
            "the due index keeps the entries of rows that have moved",
            ("fetch", "parse", "updatedb", "index"),
            ("derived",),
            (
                Change(
                    "table/embedded/embedded_due_update.py",
                    "            for key in keys:\n                txn.delete(key, db=due)\n",
                    "",
                ),
            ),
        ),
        Mutation(
            "no-recovery",
            "index does not finish the update that was committed before it",
            ("updatedb",),
            ("equal", "finished"),
            (
                Change(
                    "jobs/job_context.py",
                    "        finish_interrupted_updates(conf, lists, held.batch_records, scope)\n",
                    '        if scope.name != "index":\n'
                    "            finish_interrupted_updates(conf, lists, held.batch_records, scope)\n",
                ),
            ),
        ),
        Mutation(
            "early-mark",
            "index marks pages before the index has committed them",
            ("index",),
            ("indexed",),
            (Change("jobs/index/index_job.py", "self.write_batch(before_write=writers.commit)", "self.write_batch()"),),
        ),
        Mutation(
            "no-lock",
            "fetch does not take the lock of its batch",
            ("fetch", "parse", "updatedb"),
            ("conflicts", "requests"),
            (
                Change(
                    "jobs/locking/lock_scopes.py",
                    'FETCH = LockScope("fetch", locks_batch=True)',
                    'FETCH = LockScope("fetch")',
                ),
            ),
        ),
        Mutation(
            "new-timestamp",
            "what updatedb writes again carries the time of the repeat",
            ("updatedb",),
            ("timestamps",),
            (
                Change("jobs/batches/update_journal.py", "timestamp=record.time)", "timestamp=now_ms())"),
                Change(
                    "jobs/batches/update_journal.py",
                    "from nutch2py.table import DataStore, TableQuery, prefix_range\n",
                    "from nutch2py.table import DataStore, TableQuery, prefix_range\n"
                    "from nutch2py.support.clock import now_ms\n",
                ),
            ),
        ),
    )
}


def mutate(mutation: Mutation, folder: Path) -> None:
    """Copy the package into a folder and break it there; ValueError when a change does not fit."""
    shutil.copytree(ROOT / "nutch2py", folder / "nutch2py", ignore=shutil.ignore_patterns("__pycache__"))
    for data in ("conf", "schema"):
        shutil.copytree(ROOT / data, folder / data)
    for change in mutation.changes:
        path = folder / "nutch2py" / change.file
        text = path.read_text(encoding="utf-8")
        if text.count(change.old) != 1:
            raise ValueError(
                f"{mutation.name}: {change.file} has {text.count(change.old)} times {change.old!r}, not once"
            )
        path.write_text(text.replace(change.old, change.new), encoding="utf-8")
