"""Reading: scans of key ranges that go on after the last row when anything is lost, and rows by key.

A scanner lives in one gateway; it is asked for rows over whatever connection to that gateway is free, so nothing is
held while the caller works on the rows. When the scanner, the connection or the gateway is gone (a lease that ran
out, a restart, a region that moved), a new scanner is opened after the last row received: nothing is lost or repeated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nutch2py.table.hbase.failures import ANSWERS, FAILURES, says
from nutch2py.table.hbase.gateways import Gateways, Link, Patience
from nutch2py.table.hbase.interface import TScan
from nutch2py.table.hbase.settings import Address

LONGEST_KEY = 32767  # HConstants.MAX_ROW_LENGTH: longer keys are refused, with the whole request
_FIRST_ROWS = 16


class RowBudget:
    """How many rows to ask for at once, so that an answer has about ``most_bytes``; learns from each answer."""

    def __init__(self, most_rows: int, most_bytes: int) -> None:
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self.rows = min(_FIRST_ROWS, most_rows)

    def learn(self, rows: int, received: int) -> None:
        """Note an answer of ``rows`` rows and ``received`` bytes."""
        if rows:
            fitting = self._most_bytes * rows // max(1, received)
            self.rows = max(1, min(fitting, self.rows * 8, self._most_rows))


class Lease(NamedTuple):
    """A scanner: the gateway it lives in, and its number there."""

    address: Address
    scanner: int


class Scan:
    """Rows of the key range ``start`` to ``stop`` (excluded; empty: open) of a table, as lists of ``TRowResult``.

    ``columns`` None reads every column. ``size`` asks for a fixed number of rows at once. To be iterated once.
    """

    def __init__(
        self,
        gateways: Gateways,
        table: bytes,
        start: bytes = b"",
        stop: bytes = b"",
        columns: Sequence[bytes] | None = None,
        condition: bytes | None = None,
        size: int | None = None,
    ) -> None:
        self._gateways, self._table = gateways, table
        self._start, self._stop, self._columns, self._condition = start, stop, columns, condition
        settings = gateways.settings
        self._budget = RowBudget(settings.scan_rows, settings.scan_bytes)
        self._size = size
        self._lease: Lease | None = None

    def __iter__(self) -> Iterator[list[Any]]:
        patience = Patience(self._gateways)
        try:
            while not self._stop or self._start < self._stop:
                asked = self._size or self._budget.rows
                held = self._lease is not None
                try:
                    rows = self._fetch(asked)
                except FAILURES as error:
                    if isinstance(error, ANSWERS):
                        self._close()
                    self._lease = None
                    if not (held and says(error, "scanner ID is invalid")):
                        patience.after(error)
                    continue
                patience.progress()
                if rows:
                    self._start = rows[-1].row + b"\0"
                    yield rows
                if len(rows) < asked:
                    return
        finally:
            self._close()

    def _fetch(self, asked: int) -> list[Any]:
        with self._gateways.link(None if self._lease is None else self._lease.address) as link:
            lease = self._lease
            if lease is None:
                scanner = link.client.scannerOpenWithScan(self._table, self._description(), {})
                lease = self._lease = Lease(link.address, scanner)
            before = link.socket.received
            rows: list[Any] = link.client.scannerGetList(lease.scanner, asked)
            self._budget.learn(len(rows), link.socket.received - before)
            return rows

    def _description(self) -> TScan:
        return TScan(
            startRow=self._start or None,
            stopRow=self._stop or None,
            columns=None if self._columns is None else list(self._columns),
            caching=self._size or self._gateways.settings.scan_rows,
            filterString=self._condition,
            sortColumns=False,
        )

    def _close(self) -> None:
        """Tell the gateway that the scanner is done with; it would forget it by itself, only later."""
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(*FAILURES), self._gateways.link(lease.address) as link:
                link.client.scannerClose(lease.scanner)


def read_rows(
    gateways: Gateways, table: bytes, keys: Sequence[bytes], columns: Sequence[bytes] | None
) -> dict[bytes, dict[bytes, Any]]:
    """Return ``column -> TCell`` of those rows that have a cell of ``columns`` (None: any), by key."""
    settings = gateways.settings
    wanted = [key for key in dict.fromkeys(keys) if 0 < len(key) <= LONGEST_KEY]
    budget = RowBudget(settings.scan_rows, settings.scan_bytes)
    found: dict[bytes, dict[bytes, Any]] = {}
    at = 0
    while at < len(wanted):
        part = wanted[at : at + budget.rows]
        rows, received = gateways.call(_reader(table, part, columns))
        for row in rows:
            found[row.row] = row.columns
        budget.learn(len(part), received)
        at += len(part)
    return found


def _reader(
    table: bytes, keys: Sequence[bytes], columns: Sequence[bytes] | None
) -> Callable[[Link], tuple[list[Any], int]]:
    def read(link: Link) -> tuple[list[Any], int]:
        before = link.socket.received
        client = link.client
        rows = (
            client.getRows(table, keys, {}) if columns is None else client.getRowsWithColumns(table, keys, columns, {})
        )
        return rows, link.socket.received - before

    return read
