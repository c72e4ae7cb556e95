"""The layouts of a table's files, by number, and the steps from one to the next.

A table says its number in ``meta``. One of an earlier layout is brought to this program's when it is opened: all steps
in one transaction, so that a killed one leaves the table as it was. One of a later layout is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nutch2py.errors import StoreError
from nutch2py.reporting import warn
from nutch2py.table.embedded.files import STATE, VERSION, TableFiles
from nutch2py.version import __version__

LAYOUT = 2
"""The layout that is written. Whoever changes the files in a way that an older program cannot read raises it by one."""


class Step(NamedTuple):
    """What makes layout n+1 of layout n.

    ``apply`` is called with the files, a write transaction of ``meta`` and the handles of its databases; ``what`` says
    for the log what has changed.
    """

    apply: Callable[[TableFiles, Any, Mapping[bytes, Any]], object]
    what: str


STEPS: dict[int, Step] = {
    1: Step(lambda *_: None, "values get checksums as they are written"),
}
"""The step from each earlier layout, by its number."""


def bring_up(files: TableFiles, where: str, stored: bytes) -> None:
    """Make a table of layout ``stored`` one of :data:`LAYOUT`, and say so; StoreError when no step leads there.

    No job of an older program may be at work on it.
    """
    number = _number(where, stored)
    if number == LAYOUT:
        return
    taken: list[tuple[int, Step]] = []
    with files.writing() as (txn, handles):
        now = _number(where, bytes(txn.get(VERSION, db=handles[STATE])))  # another process may have been faster
        for each in range(now, LAYOUT):
            STEPS[each].apply(files, txn, handles)
            taken.append((each, STEPS[each]))
        txn.put(VERSION, str(LAYOUT).encode(), db=handles[STATE])
    for each, step in taken:
        warn(f"{where} had layout {each} and has {each + 1} now, which older versions do not read: {step.what}")


def _number(where: str, stored: bytes) -> int:
    """Return the number of a layout that can be read; StoreError for any other."""
    text = stored.decode("ascii", "replace")
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number > LAYOUT:
        raise StoreError(
            f"{where} has layout {number}, which a later version of nutch2py made; this one ({__version__}) reads "
            f"layouts {min(STEPS)} to {LAYOUT}: install the later version, or export the table with it (exporttable) "
            "and import it here (importtable) into another folder of storage.data.store"
        )
    if number != LAYOUT and number not in STEPS:
        raise StoreError(
            f"{where} has layout {text}, which is none of nutch2py's ({min(STEPS)} to {LAYOUT}): restore it, or name "
            "another folder in storage.data.store"
        )
    return number
