"""Reading: scans of key ranges that go on after the last row when anything is lost, and rows by key.

A scanner lives in one gateway and is asked for the next rows before the caller gets the last ones. The connection with
that question is out of the pool until its answer is read, and closed if nobody wants the answer. When the scanner, the
connection or the gateway is gone (a lease that ran out, a restart, a region that moved), a new scanner is opened after
the last row received: nothing is lost or repeated.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.gateways import Gateways, HBaseRetryPolicy
from nutch2py.table.hbase.thrift_client.hbase_errors import CALL_ERRORS, SERVER_ERRORS, ErrorCondition, error_conditions
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress
from nutch2py.table.hbase.thrift_client.thrift_types import TScan

LONGEST_KEY = 32_000
"""HBase allows 32,767 bytes, in which it also puts the table's name when it looks for the region."""
_CANCEL_WAIT = 0.2  # seconds to wait for an answer that nobody wants any more


class RowBudget:
    """How many rows to ask for at once, so that an answer has about ``most_bytes``; learns from each answer."""

    def __init__(self, max_rows: int, max_bytes: int, initial_rows: int = 16) -> None:
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self.rows = min(initial_rows, max_rows)

    def copy(self) -> RowBudget:
        """Return a budget of its own that begins with what this one has learnt."""
        return RowBudget(self._max_rows, self._max_bytes, self.rows)

    def adjust(self, rows: int, received: int) -> None:
        """Note an answer of ``rows`` rows and ``received`` bytes."""
        if rows:
            fitting = self._max_bytes * rows // max(1, received)
            self.rows = max(1, min(fitting, self.rows * 8, self._max_rows))


class ScannerLease(NamedTuple):
    """A scanner: the gateway it lives in, and its number there."""

    address: GatewayAddress
    scanner: int


class PendingRead(NamedTuple):
    """A question under way: the connection its answer comes over, the rows asked for, the bytes received before."""

    connection: GatewayConnection
    rows: int
    received_before: int


class TableScanner:
    """Rows of the key range ``start`` to ``stop`` (excluded; empty: open) of a table, as lists of ``TRowResult``.

    ``columns`` None reads every column; ``budget`` says how many rows are asked for at once. While the caller works on
    a list the gateway collects the next one. To be iterated once.
    """

    def __init__(
        self,
        gateways: Gateways,
        table: bytes,
        span: tuple[bytes, bytes],
        budget: RowBudget,
        columns: Sequence[bytes] | None = None,
        filter_string: bytes | None = None,
    ) -> None:
        self._gateways, self._table, self._budget = gateways, table, budget
        self._start, self._stop = span
        self._columns, self._filter_string = columns, filter_string
        self._lease: ScannerLease | None = None
        self._pending: PendingRead | None = None
        self._process_id = os.getpid()

    def __iter__(self) -> Iterator[list[Any]]:
        patience = HBaseRetryPolicy(self._gateways)
        try:
            while not self._stop or self._start < self._stop:
                held = self._lease is not None
                try:
                    with patience.attempt():
                        if self._pending is None:
                            self._request_rows()
                        rows, complete = self._receive_rows()
                    if rows:
                        self._start = rows[-1].row + b"\0"
                except CALL_ERRORS as error:
                    if isinstance(error, SERVER_ERRORS):
                        self._close_scanner()
                    self._lease = None
                    if not (held and ErrorCondition.SCANNER_GONE in error_conditions(error)):
                        patience.handle_failure(error)
                    continue
                if complete:
                    self._close_scanner()
                else:
                    self._prefetch()
                if rows:
                    yield rows
                if complete:
                    return
        finally:
            if self._process_id == os.getpid():  # in a child process, the scanner is still the parent's
                self._cancel_pending()
                self._close_scanner()

    def _request_rows(self) -> None:
        """Ask for rows, of a new scanner if there is none; the connection is this scan's own until they are here."""
        link = self._gateways.borrow(None if self._lease is None else self._lease.address)
        with self._gateways.return_after(link, keep=True):
            if self._lease is None:
                scanner = link.client.scannerOpenWithScan(self._table, self._scan_spec(), {})
                self._lease = ScannerLease(link.address, scanner)
            link.client._send("scannerGetList", id=self._lease.scanner, nbRows=self._budget.rows)
            self._pending = PendingRead(link, self._budget.rows, link.socket.received)

    def _prefetch(self) -> None:
        try:
            self._request_rows()
        except CALL_ERRORS:  # when the caller wants more, a new scanner is opened after the last row
            self._lease = None

    def _receive_rows(self) -> tuple[list[Any], bool]:
        """Return the rows asked for, and whether they are the last."""
        assert self._pending is not None
        (link, number, before), self._pending = self._pending, None
        with self._gateways.return_after(link):
            rows: list[Any] = link.client._recv("scannerGetList")
        self._budget.adjust(len(rows), link.socket.received - before)
        return rows, len(rows) < number

    def _scan_spec(self) -> Any:
        return TScan(
            startRow=self._start or None,
            stopRow=self._stop or None,
            columns=None if self._columns is None else list(self._columns),
            caching=self._gateways.settings.scan_rows,
            filterString=self._filter_string,
            sortColumns=False,
        )

    def _cancel_pending(self) -> None:
        """Take back the question that is not answered yet; without an answer at once the connection is closed."""
        asked = self._pending
        if asked is None:
            return
        ready, _, _ = select.select([asked.connection.transport.sock], [], [], _CANCEL_WAIT)
        if ready:
            with contextlib.suppress(*CALL_ERRORS):
                self._receive_rows()
        else:
            self._pending, self._lease = None, None
            asked.connection.close()

    def _close_scanner(self) -> None:
        """Tell the gateway that the scanner is done with; it would forget it by itself, only later."""
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(*CALL_ERRORS), self._gateways.connection(lease.address) as link:
                link.client.scannerClose(lease.scanner)


def read_rows(
    gateways: Gateways, table: bytes, keys: Sequence[bytes], columns: Sequence[bytes] | None, budget: RowBudget
) -> dict[bytes, dict[bytes, Any]]:
    """Return ``column -> TCell`` of those rows that have a cell of ``columns`` (None: any), by key."""
    wanted = [key for key in dict.fromkeys(keys) if 0 < len(key) <= LONGEST_KEY]
    found: dict[bytes, dict[bytes, Any]] = {}
    at = 0
    while at < len(wanted):
        part = wanted[at : at + budget.rows]
        rows, received = gateways.call(_read_action(table, part, columns))
        for row in rows:
            found[row.row] = row.columns
        budget.adjust(len(part), received)
        at += len(part)
    return found


def _read_action(
    table: bytes, keys: Sequence[bytes], columns: Sequence[bytes] | None
) -> Callable[[GatewayConnection], tuple[list[Any], int]]:
    def read(link: GatewayConnection) -> tuple[list[Any], int]:
        before = link.socket.received
        client = link.client
        rows = (
            client.getRows(table, keys, {}) if columns is None else client.getRowsWithColumns(table, keys, columns, {})
        )
        return rows, link.socket.received - before

    return read
