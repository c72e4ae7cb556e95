"""Layout versions of a table's files, and the migrations between them.

A table stores its layout number in ``meta``. A table of an earlier layout is migrated when it is opened: all steps run
in one transaction, so a killed migration leaves the table unchanged. A table of a later layout is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import lmdb

from nutch2py.errors import StoreError
from nutch2py.support.reporting import warn
from nutch2py.table.embedded.storage.table_files import STATE_DATABASE, VERSION, TableFiles
from nutch2py.version import __version__

LAYOUT_VERSION = 2
"""The layout that is written. Increment it with any change of the files that older versions cannot read."""


class LayoutMigration(NamedTuple):
    """Migration from layout n to layout n+1.

    ``apply`` is called with the files, a write transaction of ``meta`` and the handles of its databases;
    ``description`` describes the change for the log.
    """

    apply: Callable[[TableFiles, lmdb.Transaction[bytes], Mapping[bytes, lmdb._Database]], object]
    description: str


MIGRATIONS: dict[int, LayoutMigration] = {
    1: LayoutMigration(lambda *_: None, "values get checksums as they are written"),
}
"""The migration from each earlier layout, by its number."""


def migrate(files: TableFiles, where: str, stored: bytes) -> None:
    """Migrate a table from layout ``stored`` to :data:`LAYOUT_VERSION` and log each step.

    No job of an older version may use the table meanwhile. Raises StoreError for a layout without a migration.
    """
    number = _layout_number(where, stored)
    if number == LAYOUT_VERSION:
        return
    applied: list[tuple[int, LayoutMigration]] = []
    with files.write_transaction() as (txn, handles):
        # another process may have migrated it meanwhile
        current = _layout_number(where, txn.get(VERSION, b"", db=handles[STATE_DATABASE]))
        for each in range(current, LAYOUT_VERSION):
            MIGRATIONS[each].apply(files, txn, handles)
            applied.append((each, MIGRATIONS[each]))
        txn.put(VERSION, str(LAYOUT_VERSION).encode(), db=handles[STATE_DATABASE])
    for each, step in applied:
        warn(f"{where} migrated from layout {each} to {each + 1}, which older versions cannot read: {step.description}")


def _layout_number(where: str, stored: bytes) -> int:
    """Return the number of a supported layout; raise StoreError for any other."""
    text = stored.decode("ascii", "replace")
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number > LAYOUT_VERSION:
        raise StoreError(
            f"{where} has layout {number}, which a later version of nutch2py made; this one ({__version__}) reads "
            f"layouts {min(MIGRATIONS)} to {LAYOUT_VERSION}: install the later version, or export the table with it "
            "(exporttable) and import it here (importtable) into another folder of storage.data.store"
        )
    if number != LAYOUT_VERSION and number not in MIGRATIONS:
        raise StoreError(
            f"{where} has layout {text}, which is none of nutch2py's ({min(MIGRATIONS)} to {LAYOUT_VERSION}): restore "
            "it, or name another folder in storage.data.store"
        )
    return number
