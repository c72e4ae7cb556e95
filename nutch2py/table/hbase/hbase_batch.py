"""Collects changes by row and sends them in groups, with the cell timestamps that Gora uses.

At the time ``now`` values are put with the timestamp ``now - 1`` and deleted with ``now - 2``, so that a put survives
the delete of the same call. A Thrift call has one timestamp, so a group takes two calls. The puts are sent first: if
the process dies in between, everything is written and only the deletes are missing, such as that of the mark by which
the next run finds the row again. Calls are retried with the same timestamps, so a retry is idempotent. The due index is
updated before the rows (:mod:`nutch2py.table.hbase.hbase_due_update`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.errors import StoreError
from nutch2py.records.record import Mutation
from nutch2py.support.reporting import warn
from nutch2py.table.crawl_clock import CrawlClock
from nutch2py.table.data_store import RowCells, WriteBatch, encode_row_key
from nutch2py.table.hbase.gora_mapping import ColumnMapping
from nutch2py.table.hbase.hbase_due_update import HBaseDueUpdater
from nutch2py.table.hbase.thrift_client.hbase_scan import LONGEST_KEY
from nutch2py.table.hbase.thrift_client.row_sender import RowSender
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.wire import RowMutations

_CELL_OVERHEAD = 19  # bytes of HBase's KeyValue besides row, family:qualifier and value
_LARGEST_ROW = 90 << 20  # a gateway closes the connection at a message of 100 MB
_NO_TIMESTAMP = -1
"""Placeholder for writes without an explicit timestamp, which is assigned when they are sent."""


class RejectedRow(NamedTuple):
    """The key of a row that was not written, and the reason."""

    key: str
    reason: str


class HBaseBatch(WriteBatch):
    """Writes to an HBase table, sent at ``hbase.thrift.write.rows`` changed rows or ``hbase.thrift.write.bytes``.

    A row that HBase rejects (its key or a cell is too large) is skipped as a whole with a warning, and added to
    :attr:`rejected`; the other rows are written. :class:`nutch2py.errors.StoreError` is raised if nothing can be
    written; the collected writes are kept, and the next flush sends them with the same timestamps.
    """

    def __init__(
        self,
        gateways: ThriftGatewayPool,
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
        """Collect changes to a row; without ``timestamp`` they get the time of the flush."""
        row = encode_row_key(key)
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
        """Collect cells with their own timestamps; newer cells in the table are kept.

        Raises :class:`nutch2py.errors.StoreError` if the table lacks a family, since a copy must be complete.
        """
        row = encode_row_key(key)
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
        """Collect the deletion of a row with all cells of all families."""
        row = encode_row_key(key)
        self._puts.get(_NO_TIMESTAMP, {}).pop(row, None)
        self._deletes.setdefault(_NO_TIMESTAMP, {}).setdefault(row, {}).update(dict.fromkeys(self._known_families()))
        self._count_write(len(row))

    def has_pending(self) -> bool:
        """Return whether the batch holds unsent writes."""
        return bool(self._puts or self._deletes)

    def _refresh_families(self) -> frozenset[bytes]:
        self._cached_families = None
        return self._known_families()

    def _known_families(self) -> frozenset[bytes]:
        if self._cached_families is None:
            self._cached_families = self._families()
        return self._cached_families

    def _site_puts(self, row: bytes, puts: dict[bytes, dict[bytes, bytes]]) -> tuple[dict[bytes, bytes | None], int]:
        """Return ``site column -> value`` without families that the table lacks, and the bytes of the row."""
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
            f"table {table} has no column family {name}: to add it, run  alter '{table}', NAME => '{name}', "
            "VERSIONS => 1  in the hbase shell"
        )

    def _fits(self, key: str, row: bytes, puts: dict[bytes, bytes | None], size: int) -> bool:
        """Return whether the row is within HBase's limits; reject it otherwise."""
        if len(row) > LONGEST_KEY:
            self._reject(key, f"its key has {len(row):,} bytes, more than {LONGEST_KEY:,}")
            return False
        if size > _LARGEST_ROW:
            self._reject(key, f"it has {size:,} bytes, a gateway accepts {_LARGEST_ROW:,} per call")
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
        warn(f"row {key[:200]} skipped: {reason}")

    def _reject_sent_row(self, row: bytes, reason: str) -> None:
        """Record a row that HBase has rejected, so that its deletes are not sent either."""
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
        """Drop collected puts of columns that a later change of the row deletes."""
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
        """Assign timestamps and send everything; the writes are in HBase's write-ahead log when this returns."""
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
    """Assign ``time`` to the writes without a timestamp."""
    rows = groups.pop(_NO_TIMESTAMP, None)
    if rows is None:
        return
    target = groups.setdefault(time, {})
    for row, columns in rows.items():
        target.setdefault(row, {}).update(columns)
