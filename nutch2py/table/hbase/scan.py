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

from nutch2py.table.hbase.connection import Link
from nutch2py.table.hbase.failures import ANSWERS, FAILURES, Condition, conditions_of
from nutch2py.table.hbase.gateways import Gateways, Patience
from nutch2py.table.hbase.hbase_settings import Address
from nutch2py.table.hbase.interface import TScan

LONGEST_KEY = 32_000
"""HBase allows 32,767 bytes, in which it also puts the table's name when it looks for the region."""
_PARTING = 0.2  # seconds to wait for an answer that nobody wants any more


class RowBudget:
    """How many rows to ask for at once, so that an answer has about ``most_bytes``; learns from each answer."""

    def __init__(self, most_rows: int, most_bytes: int, first: int = 16) -> None:
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self.rows = min(first, most_rows)

    def copy(self) -> RowBudget:
        """Return a budget of its own that begins with what this one has learnt."""
        return RowBudget(self._most_rows, self._most_bytes, self.rows)

    def learn(self, rows: int, received: int) -> None:
        """Note an answer of ``rows`` rows and ``received`` bytes."""
        if rows:
            fitting = self._most_bytes * rows // max(1, received)
            self.rows = max(1, min(fitting, self.rows * 8, self._most_rows))


class Lease(NamedTuple):
    """A scanner: the gateway it lives in, and its number there."""

    address: Address
    scanner: int


class Asked(NamedTuple):
    """A question under way: the connection its answer comes over, the rows asked for, the bytes received before."""

    link: Link
    rows: int
    received: int


class Scan:
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
        condition: bytes | None = None,
    ) -> None:
        self._gateways, self._table, self._budget = gateways, table, budget
        self._start, self._stop = span
        self._columns, self._condition = columns, condition
        self._lease: Lease | None = None
        self._asked: Asked | None = None
        self._process = os.getpid()

    def __iter__(self) -> Iterator[list[Any]]:
        patience = Patience(self._gateways)
        try:
            while not self._stop or self._start < self._stop:
                held = self._lease is not None
                try:
                    with patience.asking():
                        if self._asked is None:
                            self._ask()
                        rows, complete = self._receive()
                    if rows:
                        self._start = rows[-1].row + b"\0"
                except FAILURES as error:
                    if isinstance(error, ANSWERS):
                        self._close()
                    self._lease = None
                    if not (held and Condition.SCANNER_GONE in conditions_of(error)):
                        patience.after(error)
                    continue
                if complete:
                    self._close()
                else:
                    self._ask_ahead()
                if rows:
                    yield rows
                if complete:
                    return
        finally:
            if self._process == os.getpid():  # in a child process, the scanner is still the parent's
                self._abandon()
                self._close()

    def _ask(self) -> None:
        """Ask for rows, of a new scanner if there is none; the connection is this scan's own until they are here."""
        link = self._gateways.borrow(None if self._lease is None else self._lease.address)
        with self._gateways.returning(link, keep=True):
            if self._lease is None:
                scanner = link.client.scannerOpenWithScan(self._table, self._description(), {})
                self._lease = Lease(link.address, scanner)
            link.client._send("scannerGetList", id=self._lease.scanner, nbRows=self._budget.rows)
            self._asked = Asked(link, self._budget.rows, link.socket.received)

    def _ask_ahead(self) -> None:
        try:
            self._ask()
        except FAILURES:  # when the caller wants more, a new scanner is opened after the last row
            self._lease = None

    def _receive(self) -> tuple[list[Any], bool]:
        """Return the rows asked for, and whether they are the last."""
        assert self._asked is not None
        (link, number, before), self._asked = self._asked, None
        with self._gateways.returning(link):
            rows: list[Any] = link.client._recv("scannerGetList")
        self._budget.learn(len(rows), link.socket.received - before)
        return rows, len(rows) < number

    def _description(self) -> Any:
        return TScan(
            startRow=self._start or None,
            stopRow=self._stop or None,
            columns=None if self._columns is None else list(self._columns),
            caching=self._gateways.settings.scan_rows,
            filterString=self._condition,
            sortColumns=False,
        )

    def _abandon(self) -> None:
        """Take back the question that is not answered yet; without an answer at once the connection is closed."""
        asked = self._asked
        if asked is None:
            return
        ready, _, _ = select.select([asked.link.transport.sock], [], [], _PARTING)
        if ready:
            with contextlib.suppress(*FAILURES):
                self._receive()
        else:
            self._asked, self._lease = None, None
            asked.link.close()

    def _close(self) -> None:
        """Tell the gateway that the scanner is done with; it would forget it by itself, only later."""
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(*FAILURES), self._gateways.link(lease.address) as link:
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
