"""Writing: changes are collected by row and sent in groups, with the cell timestamps that Gora gives.

At the time ``now`` values are put with the timestamp ``now - 1`` and deletions made with ``now - 2``, so that a put
outlives the deletion of the same call. One Thrift call has one timestamp, so a group is two calls. The puts go first:
a process that dies between the two has written everything and only not yet removed what is to go, such as the mark by
which the next run finds the row again. A call that is repeated has the same timestamps, so it changes nothing. Before
the rows go the entries of those whose due time changes (:mod:`nutch2py.table.hbase.listing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.cells import encode_text
from nutch2py.errors import StoreError
from nutch2py.record import Mutation
from nutch2py.reporting import warn
from nutch2py.table.clock import CrawlClock
from nutch2py.table.hbase.gateways import Gateways
from nutch2py.table.hbase.gora_mapping import ColumnMapping
from nutch2py.table.hbase.listing import Listing
from nutch2py.table.hbase.scan import LONGEST_KEY
from nutch2py.table.hbase.sending import RowSender
from nutch2py.table.hbase.wire import Rows
from nutch2py.table.store import RowCells, WriteBatch

_CELL_OVERHEAD = 19  # of HBase's KeyValue, besides row, family:qualifier and value
_LARGEST_ROW = 90 << 20  # a gateway ends the connection at a message of 100 MB
_NOW = -1
"""Stands for the timestamp of a group whose writer named no time: it is given when the group is sent."""


class Refused(NamedTuple):
    """A row that could not be written: its key, and why."""

    key: str
    reason: str


class HBaseBatch(WriteBatch):
    """Writes to an HBase table, sent at ``hbase.thrift.write.rows`` changed rows or ``hbase.thrift.write.bytes``.

    A row that HBase cannot take (a key or a cell that is too large) is left out as a whole with a warning, and noted in
    :attr:`refused`; the other rows are written. :class:`nutch2py.errors.StoreError` is raised when nothing can be
    written at all; what was collected is kept then, and sent with the same timestamps by the next flush.
    """

    def __init__(
        self,
        gateways: Gateways,
        table: bytes,
        mapping: ColumnMapping,
        families: Callable[[], frozenset[bytes]],
        clock: CrawlClock,
        listing: Listing | None = None,
    ) -> None:
        self._mapping, self._families, self._clock, self._listing = mapping, families, clock, listing
        self._name = gateways.table
        self._sender = RowSender(gateways, table, self._families_now, self._leave_out)
        self._settings = gateways.settings
        self._present: frozenset[bytes] | None = None
        self._puts: dict[int, Rows] = {}
        self._deletes: dict[int, Rows] = {}
        self._missing: set[bytes] = set()
        self._left_out: set[bytes] = set()
        self._rows = self._bytes = 0
        self.refused: list[Refused] = []

    def mutate(self, key: str, mutation: Mutation, timestamp: int | None = None) -> None:
        """Collect changes to a row; without ``timestamp`` they get the time at which they are sent."""
        row = _row_key(key)
        puts, size = self._site_puts(row, mutation.puts)
        doomed = self._site_deletes(mutation) if mutation.deletes or mutation.cleared else {}
        if not self._fits(key, row, puts, size):
            return
        self._make_room(size)
        put_time, delete_time = (_NOW, _NOW) if timestamp is None else (timestamp - 1, timestamp - 2)
        if doomed:
            self._take_back(put_time, row, doomed)
            self._deletes.setdefault(delete_time, {}).setdefault(row, {}).update(doomed)
        if puts:
            self._add(put_time, row, puts)
        self._count(size)

    def put_cells(self, key: str, cells: RowCells) -> None:
        """Collect cells with their own timestamps; newer ones in the table stay as they are.

        Raises :class:`nutch2py.errors.StoreError` when the table has no such family: a copy should lose nothing.
        """
        row = _row_key(key)
        by_time: dict[int, dict[bytes, dict[bytes, bytes]]] = {}
        for family, entries in cells.items():
            for qualifier, (value, time) in entries.items():
                by_time.setdefault(time, {}).setdefault(family, {})[qualifier] = value
        self._clock.see(max(by_time, default=0))
        for family, entries in cells.items():
            for site in {self._mapping.to_site(family, qualifier).partition(b":")[0] for qualifier in entries}:
                if site not in self._known_families():
                    raise StoreError(f"row {key[:200]}: {self._no_family(site)}")
        ready = {time: self._site_puts(row, families) for time, families in by_time.items()}
        size = sum(part for _, part in ready.values())
        if all(self._fits(key, row, puts, part) for puts, part in ready.values()):
            self._make_room(size)
            for time, (puts, _) in ready.items():
                if puts:
                    self._add(time, row, puts)
            self._count(size)

    def delete(self, key: str) -> None:
        """Collect the deletion of a row: all its cells in all families, foreign ones included."""
        row = _row_key(key)
        self._puts.get(_NOW, {}).pop(row, None)
        self._deletes.setdefault(_NOW, {}).setdefault(row, {}).update(dict.fromkeys(self._known_families()))
        self._count(len(row))

    def pending(self) -> bool:
        """Tell whether something was collected that was not sent."""
        return bool(self._puts or self._deletes)

    def _families_now(self) -> frozenset[bytes]:
        self._present = None
        return self._known_families()

    def _known_families(self) -> frozenset[bytes]:
        if self._present is None:
            self._present = self._families()
        return self._present

    def _site_puts(self, row: bytes, puts: dict[bytes, dict[bytes, bytes]]) -> tuple[dict[bytes, bytes | None], int]:
        """Return ``column -> value`` under the site's names, without families that the table lacks, and its bytes."""
        present = self._known_families()
        plain, to_site = self._mapping.plain, self._mapping.to_site
        found: dict[bytes, bytes | None] = {}
        size = len(row)
        for family, columns in puts.items():
            if plain:
                if family not in present:
                    self._note_missing(family)
                    continue
                prefix = family + b":"
                for qualifier, value in columns.items():
                    found[prefix + qualifier] = value
                    size += len(qualifier) + len(value)
            else:
                for qualifier, value in columns.items():
                    column = to_site(family, qualifier)
                    if column.partition(b":")[0] not in present:
                        self._note_missing(column.partition(b":")[0])
                        continue
                    found[column] = value
                    size += len(qualifier) + len(value)
        return found, size

    def _site_deletes(self, mutation: Mutation) -> dict[bytes, bytes | None]:
        present, mapping = self._known_families(), self._mapping
        found: dict[bytes, bytes | None] = {}
        for family in mutation.cleared:
            site = mapping.families.get(family, family)
            if site in present:
                found[site] = None
        for family, qualifiers in mutation.deletes.items():
            for qualifier in qualifiers:
                column = mapping.to_site(family, qualifier)
                if column.partition(b":")[0] in present:
                    found[column] = None
        return found

    def _note_missing(self, family: bytes) -> None:
        if family not in self._missing:
            self._missing.add(family)
            warn(f"{self._no_family(family)}; until then its cells are not stored")

    def _no_family(self, family: bytes) -> str:
        name, table = family.decode("utf-8", "replace"), self._name
        return (
            f"table {table} has no column family {name}: to have it, run  alter '{table}', NAME => '{name}', "
            "VERSIONS => 1  in the hbase shell"
        )

    def _fits(self, key: str, row: bytes, puts: dict[bytes, bytes | None], size: int) -> bool:
        """Tell whether HBase takes the row; note and warn if not."""
        if len(row) > LONGEST_KEY:
            self._refuse(key, f"its key has {len(row):,} bytes, more than {LONGEST_KEY:,}")
            return False
        if size > _LARGEST_ROW:
            self._refuse(key, f"it has {size:,} bytes, a gateway takes {_LARGEST_ROW:,} at once")
            return False
        limit = self._settings.largest_cell
        if 0 < limit <= size + _CELL_OVERHEAD + 64 * len(puts):
            for column, value in puts.items():
                cell = len(row) + len(column) + len(value or b"") + _CELL_OVERHEAD
                if cell > limit:
                    self._refuse(
                        key,
                        f"the cell {column.decode('utf-8', 'replace')} has {cell:,} bytes, more than "
                        f"hbase.client.keyvalue.maxsize = {limit:,}: raise that property here, at the gateway and (as "
                        "hbase.server.keyvalue.maxsize) at the region servers, or lower http.content.limit",
                    )
                    return False
        return True

    def _refuse(self, key: str, reason: str) -> None:
        self.refused.append(Refused(key, reason))
        warn(f"row {key[:200]} is not written: {reason}")

    def _leave_out(self, row: bytes, reason: str) -> None:
        """Note a row that HBase has refused, so that its deletions are not sent either."""
        self._left_out.add(row)
        self._refuse(row.decode("utf-8", "replace"), reason)

    def _add(self, time: int, row: bytes, puts: dict[bytes, bytes | None]) -> None:
        rows = self._puts.get(time)
        if rows is None:
            rows = self._puts[time] = {}
        pending = rows.get(row)
        if pending is None:
            rows[row] = puts
        else:
            pending.update(puts)

    def _take_back(self, time: int, row: bytes, doomed: dict[bytes, bytes | None]) -> None:
        """Drop collected puts that a later change of the row deletes."""
        rows = self._puts.get(time, {})
        pending = rows.get(row)
        if pending:
            for column in [c for c in pending if c in doomed or c.partition(b":")[0] in doomed]:
                del pending[column]
            if not pending:
                del rows[row]

    def _make_room(self, size: int) -> None:
        if self._rows and self._bytes + size > self._settings.write_bytes:
            self.flush()

    def _count(self, size: int) -> None:
        self._rows += 1
        self._bytes += size
        if self._rows >= self._settings.write_rows or self._bytes >= self._settings.write_bytes:
            self.flush()

    def _write(self) -> None:
        """Give a time to the writes that have none, and send everything; when it returns, HBase has it in its log."""
        if _NOW in self._puts or _NOW in self._deletes:
            now = self._clock.next()
            _rename(self._puts, now - 1)
            _rename(self._deletes, now - 2)
        if self._listing is not None:
            self._listing.write(self._puts, self._deletes)
        self._sender.send(self._puts)
        for rows in self._deletes.values():
            for row in self._left_out & rows.keys():
                del rows[row]
        self._sender.send(self._deletes)
        self._puts, self._deletes, self._left_out = {}, {}, set()
        self._rows = self._bytes = 0


def _rename(groups: dict[int, Rows], time: int) -> None:
    """Let the group without a time have ``time``."""
    rows = groups.pop(_NOW, None)
    if rows is None:
        return
    there = groups.setdefault(time, {})
    for row, columns in rows.items():
        there.setdefault(row, {}).update(columns)


def _row_key(key: str) -> bytes:
    if not key:
        raise ValueError("a row key cannot be empty")
    return encode_text(key)
