"""Sending rows: several calls under way at once, repeated when one cannot pass; refused rows are sorted out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.table.hbase.connection import Link
from nutch2py.table.hbase.failures import ANSWERS, Condition, conditions_of, explained, first_line, hopeless, threw
from nutch2py.table.hbase.gateways import Gateways
from nutch2py.table.hbase.wire import Rows

_IN_FLIGHT = 32


class Request(NamedTuple):
    """One call of the gateway: mutations of rows, all with one timestamp."""

    timestamp: int
    rows: Rows


class RowSender:
    """Writes groups of rows to one table. ``families`` asks HBase which families the table has now.

    ``refuse(row key, reason)`` is called for each row that HBase cannot take; the other rows are written.
    """

    def __init__(
        self,
        gateways: Gateways,
        table: bytes,
        families: Callable[[], frozenset[bytes]],
        refuse: Callable[[bytes, str], None],
    ) -> None:
        self._gateways, self._table, self._families, self._refuse = gateways, table, families, refuse

    def send(self, groups: dict[int, Rows]) -> None:
        """Write ``timestamp -> rows``; :class:`nutch2py.errors.StoreError` when it cannot be done."""
        ready = [Request(time, rows) for time, rows in sorted(groups.items()) if rows]
        for at in range(0, len(ready), _IN_FLIGHT):
            self._send_all(ready[at : at + _IN_FLIGHT])

    def _send_all(self, requests: list[Request]) -> None:
        """Send calls one behind the other without waiting for each answer; look at those that failed one by one."""
        try:
            failed = self._gateways.call(_sender(self._table, requests))
        except ANSWERS as error:
            raise explained(error, self._gateways.table, self._gateways.where) from error
        for request, refusal in failed:
            self._handle(request, refusal)

    def _handle(self, request: Request, error: Exception) -> None:
        """Find the rows of a failed call that HBase refuses, and write the others."""
        if threw(error, "NoSuchColumnFamilyException"):  # somebody has altered the table
            rows = _without_missing(request.rows, self._families())
            if rows != request.rows:
                if rows:
                    self._send_all([Request(request.timestamp, rows)])
                return
        if Condition.TOO_LARGE not in conditions_of(error):
            raise explained(error, self._gateways.table, self._gateways.where) from error
        if len(request.rows) > 1:
            items = list(request.rows.items())
            for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                self._send_all([Request(request.timestamp, dict(half))])
            return
        (row,) = request.rows
        self._refuse(row, f"HBase answered: {first_line(error)}")


def _without_missing(rows: Rows, present: frozenset[bytes]) -> Rows:
    kept = {
        row: {column: value for column, value in columns.items() if column.partition(b":")[0] in present}
        for row, columns in rows.items()
    }
    return {row: columns for row, columns in kept.items() if columns}


def _sender(table: bytes, requests: list[Request]) -> Callable[[Link], list[tuple[Request, Exception]]]:
    """Return the action that sends calls and returns those that HBase refused for good."""

    def send(link: Link) -> list[tuple[Request, Exception]]:
        client = link.client
        failed: list[tuple[Request, Exception]] = []
        passing: Exception | None = None
        for request in requests:
            link.send_rows(table, request.timestamp, request.rows)
        for request in requests:
            try:
                client._recv("mutateRowsTs")
            except ANSWERS as error:
                if hopeless(error):
                    failed.append((request, error))
                else:
                    passing = error
        if passing is not None:
            client.getColumnDescriptors(table)  # says so if the table is gone, which the answer to a write does not
            raise passing  # all are sent again, which changes nothing for those that were written
        return failed

    return send
