"""Sending rows: several calls under way at once, repeated when one cannot pass; refused rows are sorted out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.gateways import Gateways
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    SERVER_ERRORS,
    ErrorCondition,
    error_conditions,
    first_line,
    has_java_exception,
    is_permanent,
    to_store_error,
)
from nutch2py.table.hbase.thrift_client.wire import RowMutations

_MAX_IN_FLIGHT = 32


class MutateRowsCall(NamedTuple):
    """One call of the gateway: mutations of rows, all with one timestamp."""

    timestamp: int
    rows: RowMutations


class RowSender:
    """Writes groups of rows to one table. ``families`` asks HBase which families the table has now.

    ``refuse(row key, reason)`` is called for each row that HBase cannot take; the other rows are written.
    """

    def __init__(
        self,
        gateways: Gateways,
        table: bytes,
        families: Callable[[], frozenset[bytes]],
        reject: Callable[[bytes, str], None],
    ) -> None:
        self._gateways, self._table, self._families, self._reject = gateways, table, families, reject

    def send(self, groups: dict[int, RowMutations]) -> None:
        """Write ``timestamp -> rows``; :class:`nutch2py.errors.StoreError` when it cannot be done."""
        ready = [MutateRowsCall(time, rows) for time, rows in sorted(groups.items()) if rows]
        for at in range(0, len(ready), _MAX_IN_FLIGHT):
            self._send_all(ready[at : at + _MAX_IN_FLIGHT])

    def _send_all(self, requests: list[MutateRowsCall]) -> None:
        """Send calls one behind the other without waiting for each answer; look at those that failed one by one."""
        try:
            failed = self._gateways.call(_send_action(self._table, requests))
        except SERVER_ERRORS as error:
            raise to_store_error(error, self._gateways.table, self._gateways.where) from error
        for request, refusal in failed:
            self._handle_failure(request, refusal)

    def _handle_failure(self, request: MutateRowsCall, error: Exception) -> None:
        """Find the rows of a failed call that HBase refuses, and write the others."""
        if has_java_exception(error, "NoSuchColumnFamilyException"):  # somebody has altered the table
            rows = _drop_missing_families(request.rows, self._families())
            if rows != request.rows:
                if rows:
                    self._send_all([MutateRowsCall(request.timestamp, rows)])
                return
        if ErrorCondition.TOO_LARGE not in error_conditions(error):
            raise to_store_error(error, self._gateways.table, self._gateways.where) from error
        if len(request.rows) > 1:
            items = list(request.rows.items())
            for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                self._send_all([MutateRowsCall(request.timestamp, dict(half))])
            return
        (row,) = request.rows
        self._reject(row, f"HBase answered: {first_line(error)}")


def _drop_missing_families(rows: RowMutations, present: frozenset[bytes]) -> RowMutations:
    kept = {
        row: {column: value for column, value in columns.items() if column.partition(b":")[0] in present}
        for row, columns in rows.items()
    }
    return {row: columns for row, columns in kept.items() if columns}


def _send_action(
    table: bytes, requests: list[MutateRowsCall]
) -> Callable[[GatewayConnection], list[tuple[MutateRowsCall, Exception]]]:
    """Return the action that sends calls and returns those that HBase refused for good."""

    def send(link: GatewayConnection) -> list[tuple[MutateRowsCall, Exception]]:
        client = link.client
        failed: list[tuple[MutateRowsCall, Exception]] = []
        passing: Exception | None = None
        for request in requests:
            link.send_rows(table, request.timestamp, request.rows)
        for request in requests:
            try:
                client._recv("mutateRowsTs")
            except SERVER_ERRORS as error:
                if is_permanent(error):
                    failed.append((request, error))
                else:
                    passing = error
        if passing is not None:
            client.getColumnDescriptors(table)  # says so if the table is gone, which the answer to a write does not
            raise passing  # all are sent again, which changes nothing for those that were written
        return failed

    return send
