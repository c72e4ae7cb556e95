"""Writing: changes are collected by row and sent in groups, with the cell timestamps that Gora gives.

At the time ``now`` values are put with the timestamp ``now - 1`` and deletions made with ``now - 2``, so that a put
outlives the deletion of the same call. One Thrift call has one timestamp, so a group is two calls. The puts go first:
a process that dies between the two has written everything and only not yet removed what is to go, such as the mark by
which the next run finds the row again. A call that is repeated has the same timestamps, so it changes nothing. Before
the rows go the entries of those whose due time changes (:mod:`nutch2py.table.hbase.hbase_due_update`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.errors import StoreError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import Mutation
from nutch2py.support.reporting import warn
from nutch2py.table.clock import CrawlClock
from nutch2py.table.data_store import RowCells, WriteBatch
from nutch2py.table.hbase.gora_mapping import ColumnMapping
from nutch2py.table.hbase.hbase_due_update import HBaseDueUpdater
from nutch2py.table.hbase.thrift_client.gateways import Gateways
from nutch2py.table.hbase.thrift_client.hbase_scan import LONGEST_KEY
from nutch2py.table.hbase.thrift_client.row_sender import RowSender
from nutch2py.table.hbase.thrift_client.wire import RowMutations

_CELL_OVERHEAD = 19  # of HBase's KeyValue, besides row, family:qualifier and value
_LARGEST_ROW = 90 << 20  # a gateway ends the connection at a message of 100 MB
_NO_TIMESTAMP = -1
"""Stands for the timestamp of a group whose writer named no time: it is given when the group is sent."""


class RejectedRow(NamedTuple):
    """A row that could not be written: its key, and why."""

    key: str
    reason: str


class HBaseBatch(WriteBatch):
    """Writes to an HBase table, sent at ``hbase.thrift.write.rows`` changed rows or ``hbase.thrift.write.bytes``.

    A row that HBase cannot take (a key or a cell that is too large) is left out as a whole with a warning, and noted in
    :attr:`rejected`; the other rows are written. :class:`nutch2py.errors.StoreError` is raised when nothing can be
    written at all; what was collected is kept then, and sent with the same timestamps by the next flush.
    """

    def __init__(
        self,
        gateways: Gateways,
        table: bytes,
        mapping: ColumnMapping,
        families: Callable[[], frozenset[bytes]],
        clock: CrawlClock,
        due_updater: HBaseDueUpdater | None = None,
    ) -> None:
        self._mapping, self._families, self._clock, self._due_updater = mapping, families, clock, due_updater
        self._name = gateways.table
        self._sender = RowSender(gateways, table, self._refresh_families, self._reject_sent_row)
        self._settings = gateways.settings
        self._cached_families: frozenset[bytes] | None = None
        self._puts: dict[int, RowMutations] = {}
        self._deletes: dict[int, RowMutations] = {}
        self._missing_families: set[bytes] = set()
        self._rejected_keys: set[bytes] = set()
        self._row_count = self._byte_count = 0
        self.rejected: list[RejectedRow] = []

    def mutate(self, key: str, mutation: Mutation, timestamp: int | None = None) -> None:
        """Collect changes to a row; without ``timestamp`` they get the time at which they are sent."""
        row = _encode_key(key)
        puts, size = self._site_puts(row, mutation.puts)
        doomed = self._site_deletes(mutation) if mutation.deletes or mutation.cleared_families else {}
        if not self._fits(key, row, puts, size):
            return
        self._flush_if_full(size)
        put_time, delete_time = (_NO_TIMESTAMP, _NO_TIMESTAMP) if timestamp is None else (timestamp - 1, timestamp - 2)
        if doomed:
            self._drop_deleted_puts(put_time, row, doomed)
            self._deletes.setdefault(delete_time, {}).setdefault(row, {}).update(doomed)
        if puts:
            self._add(put_time, row, puts)
        self._count_write(size)

    def put_cells(self, key: str, cells: RowCells) -> None:
        """Collect cells with their own timestamps; newer ones in the table stay as they are.

        Raises :class:`nutch2py.errors.StoreError` when the table has no such family: a copy should lose nothing.
        """
        row = _encode_key(key)
        by_time: dict[int, dict[bytes, dict[bytes, bytes]]] = {}
        for family, entries in cells.items():
            for qualifier, (value, time) in entries.items():
                by_time.setdefault(time, {}).setdefault(family, {})[qualifier] = value
        self._clock.observe(max(by_time, default=0))
        for family, entries in cells.items():
            for site in {self._mapping.to_site(family, qualifier).partition(b":")[0] for qualifier in entries}:
                if site not in self._known_families():
                    raise StoreError(f"row {key[:200]}: {self._missing_family_message(site)}")
        ready = {time: self._site_puts(row, families) for time, families in by_time.items()}
        size = sum(part for _, part in ready.values())
        if all(self._fits(key, row, puts, part) for puts, part in ready.values()):
            self._flush_if_full(size)
            for time, (puts, _) in ready.items():
                if puts:
                    self._add(time, row, puts)
            self._count_write(size)

    def delete(self, key: str) -> None:
        """Collect the deletion of a row: all its cells in all families, foreign ones included."""
        row = _encode_key(key)
        self._puts.get(_NO_TIMESTAMP, {}).pop(row, None)
        self._deletes.setdefault(_NO_TIMESTAMP, {}).setdefault(row, {}).update(dict.fromkeys(self._known_families()))
        self._count_write(len(row))

    def has_pending(self) -> bool:
        """Tell whether something was collected that was not sent."""
        return bool(self._puts or self._deletes)

    def _refresh_families(self) -> frozenset[bytes]:
        self._cached_families = None
        return self._known_families()

    def _known_families(self) -> frozenset[bytes]:
        if self._cached_families is None:
            self._cached_families = self._families()
        return self._cached_families

    def _site_puts(self, row: bytes, puts: dict[bytes, dict[bytes, bytes]]) -> tuple[dict[bytes, bytes | None], int]:
        """Return ``column -> value`` under the site's names, without families that the table lacks, and its bytes."""
        present = self._known_families()
        plain, to_site = self._mapping.plain, self._mapping.to_site
        found: dict[bytes, bytes | None] = {}
        size = len(row)
        for family, columns in puts.items():
            if plain:
                if family not in present:
                    self._warn_missing_family(family)
                    continue
                prefix = family + b":"
                for qualifier, value in columns.items():
                    found[prefix + qualifier] = value
                    size += len(qualifier) + len(value)
            else:
                for qualifier, value in columns.items():
                    column = to_site(family, qualifier)
                    if column.partition(b":")[0] not in present:
                        self._warn_missing_family(column.partition(b":")[0])
                        continue
                    found[column] = value
                    size += len(qualifier) + len(value)
        return found, size

    def _site_deletes(self, mutation: Mutation) -> dict[bytes, bytes | None]:
        present, mapping = self._known_families(), self._mapping
        found: dict[bytes, bytes | None] = {}
        for family in mutation.cleared_families:
            site = mapping.families.get(family, family)
            if site in present:
                found[site] = None
        for family, qualifiers in mutation.deletes.items():
            for qualifier in qualifiers:
                column = mapping.to_site(family, qualifier)
                if column.partition(b":")[0] in present:
                    found[column] = None
        return found

    def _warn_missing_family(self, family: bytes) -> None:
        if family not in self._missing_families:
            self._missing_families.add(family)
            warn(f"{self._missing_family_message(family)}; until then its cells are not stored")

    def _missing_family_message(self, family: bytes) -> str:
        name, table = family.decode("utf-8", "replace"), self._name
        return (
            f"table {table} has no column family {name}: to have it, run  alter '{table}', NAME => '{name}', "
            "VERSIONS => 1  in the hbase shell"
        )

    def _fits(self, key: str, row: bytes, puts: dict[bytes, bytes | None], size: int) -> bool:
        """Tell whether HBase takes the row; note and warn if not."""
        if len(row) > LONGEST_KEY:
            self._reject(key, f"its key has {len(row):,} bytes, more than {LONGEST_KEY:,}")
            return False
        if size > _LARGEST_ROW:
            self._reject(key, f"it has {size:,} bytes, a gateway takes {_LARGEST_ROW:,} at once")
            return False
        limit = self._settings.max_cell_bytes
        if 0 < limit <= size + _CELL_OVERHEAD + 64 * len(puts):
            for column, value in puts.items():
                cell = len(row) + len(column) + len(value or b"") + _CELL_OVERHEAD
                if cell > limit:
                    self._reject(
                        key,
                        f"the cell {column.decode('utf-8', 'replace')} has {cell:,} bytes, more than "
                        f"hbase.client.keyvalue.maxsize = {limit:,}: raise that property here, at the gateway and (as "
                        "hbase.server.keyvalue.maxsize) at the region servers, or lower http.content.limit",
                    )
                    return False
        return True

    def _reject(self, key: str, reason: str) -> None:
        self.rejected.append(RejectedRow(key, reason))
        warn(f"row {key[:200]} is not written: {reason}")

    def _reject_sent_row(self, row: bytes, reason: str) -> None:
        """Note a row that HBase has refused, so that its deletions are not sent either."""
        self._rejected_keys.add(row)
        self._reject(row.decode("utf-8", "replace"), reason)

    def _add(self, time: int, row: bytes, puts: dict[bytes, bytes | None]) -> None:
        rows = self._puts.get(time)
        if rows is None:
            rows = self._puts[time] = {}
        pending = rows.get(row)
        if pending is None:
            rows[row] = puts
        else:
            pending.update(puts)

    def _drop_deleted_puts(self, time: int, row: bytes, doomed: dict[bytes, bytes | None]) -> None:
        """Drop collected puts that a later change of the row deletes."""
        rows = self._puts.get(time, {})
        pending = rows.get(row)
        if pending:
            for column in [c for c in pending if c in doomed or c.partition(b":")[0] in doomed]:
                del pending[column]
            if not pending:
                del rows[row]

    def _flush_if_full(self, size: int) -> None:
        if self._row_count and self._byte_count + size > self._settings.write_bytes:
            self.flush()

    def _count_write(self, size: int) -> None:
        self._row_count += 1
        self._byte_count += size
        if self._row_count >= self._settings.write_rows or self._byte_count >= self._settings.write_bytes:
            self.flush()

    def _write(self) -> None:
        """Give a time to the writes that have none, and send everything; when it returns, HBase has it in its log."""
        if _NO_TIMESTAMP in self._puts or _NO_TIMESTAMP in self._deletes:
            now = self._clock.next()
            _assign_timestamp(self._puts, now - 1)
            _assign_timestamp(self._deletes, now - 2)
        if self._due_updater is not None:
            self._due_updater.write(self._puts, self._deletes)
        self._sender.send(self._puts)
        for rows in self._deletes.values():
            for row in self._rejected_keys & rows.keys():
                del rows[row]
        self._sender.send(self._deletes)
        self._puts, self._deletes, self._rejected_keys = {}, {}, set()
        self._row_count = self._byte_count = 0


def _assign_timestamp(groups: dict[int, RowMutations], time: int) -> None:
    """Let the group without a time have ``time``."""
    rows = groups.pop(_NO_TIMESTAMP, None)
    if rows is None:
        return
    there = groups.setdefault(time, {})
    for row, columns in rows.items():
        there.setdefault(row, {}).update(columns)


def _encode_key(key: str) -> bytes:
    if not key:
        raise ValueError("a row key cannot be empty")
    return encode_text(key)
