"""The layouts of a table's files, by number, and the steps from one to the next.

A table says its number in ``meta``. One of an earlier layout is brought to this program's when it is opened: all steps
in one transaction, so that a killed one leaves the table as it was. One of a later layout is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nutch2py.errors import StoreError
from nutch2py.support.reporting import warn
from nutch2py.table.embedded.storage.table_files import STATE_DATABASE, VERSION, TableFiles
from nutch2py.version import __version__

LAYOUT_VERSION = 2
"""The layout that is written. Whoever changes the files in a way that an older program cannot read raises it by one."""


class LayoutMigration(NamedTuple):
    """What makes layout n+1 of layout n.

    ``apply`` is called with the files, a write transaction of ``meta`` and the handles of its databases; ``description`` says
    for the log what has changed.
    """

    apply: Callable[[TableFiles, Any, Mapping[bytes, Any]], object]
    description: str


MIGRATIONS: dict[int, LayoutMigration] = {
    1: LayoutMigration(lambda *_: None, "values get checksums as they are written"),
}
"""The step from each earlier layout, by its number."""


def migrate(files: TableFiles, where: str, stored: bytes) -> None:
    """Make a table of layout ``stored`` one of :data:`LAYOUT_VERSION`, and say so; StoreError when no step leads there.

    No job of an older program may be at work on it.
    """
    number = _layout_number(where, stored)
    if number == LAYOUT_VERSION:
        return
    taken: list[tuple[int, LayoutMigration]] = []
    with files.write_transaction() as (txn, handles):
        now = _layout_number(
            where, bytes(txn.get(VERSION, db=handles[STATE_DATABASE]))
        )  # another process may have been faster
        for each in range(now, LAYOUT_VERSION):
            MIGRATIONS[each].apply(files, txn, handles)
            taken.append((each, MIGRATIONS[each]))
        txn.put(VERSION, str(LAYOUT_VERSION).encode(), db=handles[STATE_DATABASE])
    for each, step in taken:
        warn(f"{where} had layout {each} and has {each + 1} now, which older versions do not read: {step.description}")


def _layout_number(where: str, stored: bytes) -> int:
    """Return the number of a layout that can be read; StoreError for any other."""
    text = stored.decode("ascii", "replace")
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number > LAYOUT_VERSION:
        raise StoreError(
            f"{where} has layout {number}, which a later version of nutch2py made; this one ({__version__}) reads "
            f"layouts {min(MIGRATIONS)} to {LAYOUT_VERSION}: install the later version, or export the table with it (exporttable) "
            "and import it here (importtable) into another folder of storage.data.store"
        )
    if number != LAYOUT_VERSION and number not in MIGRATIONS:
        raise StoreError(
            f"{where} has layout {text}, which is none of nutch2py's ({min(MIGRATIONS)} to {LAYOUT_VERSION}): restore it, or name "
            "another folder in storage.data.store"
        )
    return number
