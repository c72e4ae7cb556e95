"""Reads rows by key, and scans key ranges with recovery from lost scanners, connections and gateways.

A scanner belongs to one gateway. The next rows are requested before the caller gets the last ones. The connection of a
pending request is not in the pool until its response is read, and is closed if the scan is abandoned. If the scanner,
connection or gateway is lost (expired lease, restart, moved region), a new scanner is opened after the last row
received, so rows are neither lost nor repeated.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nutch2py.support.invariants import not_none
from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.hbase_errors import CALL_ERRORS, SERVER_ERRORS, ErrorCondition, error_conditions
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.thrift_types import ThriftCell, ThriftRow, TScan

LONGEST_KEY = 32_000
"""Maximum bytes of a row key. HBase allows 32,767, including the table's name when it looks up the region."""
_CANCEL_WAIT = 0.2  # seconds to wait for the response to a cancelled request


class KeySpan(NamedTuple):
    """Keys in bytes from ``start`` (included) to ``stop`` (excluded); an empty string leaves that end open."""

    start: bytes
    stop: bytes


class RowBudget:
    """Number of rows per request, adjusted after each response so that a response has about ``max_bytes``."""

    def __init__(self, max_rows: int, max_bytes: int, initial_rows: int = 16) -> None:
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self.rows = min(initial_rows, max_rows)

    def copy(self) -> RowBudget:
        """Return an independent budget that starts with the current number of rows."""
        return RowBudget(self._max_rows, self._max_bytes, self.rows)

    def adjust(self, rows: int, received: int) -> None:
        """Adjust the budget to a response of ``rows`` rows and ``received`` bytes."""
        if rows:
            fitting = self._max_bytes * rows // max(1, received)
            self.rows = max(1, min(fitting, self.rows * 8, self._max_rows))


class ScannerLease(NamedTuple):
    """A scanner: its gateway, and its number there."""

    address: GatewayAddress
    scanner: int


class PendingRead(NamedTuple):
    """A pending request: its connection, the number of rows requested, and the bytes received before."""

    connection: GatewayConnection
    rows: int
    received_before: int


class TableScanner:
    """Iterate over the rows of a key range as lists of ``TRowResult``, once.

    ``columns`` None reads every column; ``budget`` limits the rows per request. While the caller processes a list, the
    gateway collects the next one.
    """

    def __init__(
        self,
        gateways: ThriftGatewayPool,
        table: bytes,
        span: KeySpan,
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

    def __iter__(self) -> Iterator[list[ThriftRow]]:
        retry = self._gateways.new_retry()
        try:
            while not self._stop or self._start < self._stop:
                held = self._lease is not None
                try:
                    with retry.attempt():
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
                        retry.handle_failure(error)
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
            if self._process_id == os.getpid():  # in a child process the scanner belongs to the parent
                self._cancel_pending()
                self._close_scanner()

    def _request_rows(self) -> None:
        """Request rows, from a new scanner if there is none; the scan keeps the connection until the response."""
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
        except CALL_ERRORS:  # the next iteration opens a new scanner after the last row
            self._lease = None

    def _receive_rows(self) -> tuple[list[ThriftRow], bool]:
        """Return the requested rows, and whether they are the last."""
        (link, number, before), self._pending = not_none(self._pending, "pending read"), None
        with self._gateways.return_after(link):
            rows: list[ThriftRow] = link.client._recv("scannerGetList")
        self._budget.adjust(len(rows), link.socket.received - before)
        return rows, len(rows) < number

    def _scan_spec(self) -> object:
        return TScan(
            startRow=self._start or None,
            stopRow=self._stop or None,
            columns=None if self._columns is None else list(self._columns),
            caching=self._gateways.settings.scan_rows,
            filterString=self._filter_string,
            sortColumns=False,
        )

    def _cancel_pending(self) -> None:
        """Cancel the pending request; without an immediate response the connection is closed."""
        pending = self._pending
        if pending is None:
            return
        ready, _, _ = select.select([pending.connection.transport.sock], [], [], _CANCEL_WAIT)
        if ready:
            with contextlib.suppress(*CALL_ERRORS):
                self._receive_rows()
        else:
            self._pending, self._lease = None, None
            pending.connection.close()

    def _close_scanner(self) -> None:
        """Close the scanner at the gateway, instead of waiting for its lease to expire."""
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(*CALL_ERRORS), self._gateways.connection(lease.address) as link:
                link.client.scannerClose(lease.scanner)


def read_rows(
    gateways: ThriftGatewayPool, table: bytes, keys: Sequence[bytes], columns: Sequence[bytes] | None, budget: RowBudget
) -> dict[bytes, dict[bytes, ThriftCell]]:
    """Return ``key -> column -> TCell`` of the rows that have a cell of ``columns`` (None: any)."""
    wanted = [key for key in dict.fromkeys(keys) if 0 < len(key) <= LONGEST_KEY]
    found: dict[bytes, dict[bytes, ThriftCell]] = {}
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
) -> Callable[[GatewayConnection], tuple[list[ThriftRow], int]]:
    def read(link: GatewayConnection) -> tuple[list[ThriftRow], int]:
        before = link.socket.received
        client = link.client
        rows = (
            client.getRows(table, keys, {}) if columns is None else client.getRowsWithColumns(table, keys, columns, {})
        )
        return rows, link.socket.received - before

    return read
