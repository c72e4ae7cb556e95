"""Sends rows with pipelined calls, retries them, and separates rows that HBase rejects."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    SERVER_ERRORS,
    ErrorCondition,
    error_conditions,
    first_line,
    has_java_exception,
    is_permanent,
    to_store_error,
)
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.wire import RowMutations

_MAX_IN_FLIGHT = 32


class MutateRowsCall(NamedTuple):
    """One call to a gateway: mutations of rows with one timestamp."""

    timestamp: int
    rows: RowMutations


class RowSender:
    """Write groups of rows to one table. ``families`` fetches the current families of the table.

    ``reject(row key, reason)`` is called for each row that HBase rejects; the other rows are written.
    """

    def __init__(
        self,
        gateways: ThriftGatewayPool,
        table: bytes,
        families: Callable[[], frozenset[bytes]],
        reject: Callable[[bytes, str], None],
    ) -> None:
        self._gateways, self._table, self._families, self._reject = gateways, table, families, reject

    def send(self, groups: dict[int, RowMutations]) -> None:
        """Write ``timestamp -> rows``; raise :class:`nutch2py.errors.StoreError` if that fails."""
        ready = [MutateRowsCall(time, rows) for time, rows in sorted(groups.items()) if rows]
        for at in range(0, len(ready), _MAX_IN_FLIGHT):
            self._send_all(ready[at : at + _MAX_IN_FLIGHT])

    def _send_all(self, requests: list[MutateRowsCall]) -> None:
        """Send pipelined calls, then handle failed ones one by one."""
        try:
            failed = self._gateways.call(_send_action(self._table, requests))
        except SERVER_ERRORS as error:
            raise to_store_error(error, self._gateways.table, self._gateways.where) from error
        for request, failure in failed:
            self._handle_failure(request, failure)

    def _handle_failure(self, request: MutateRowsCall, error: Exception) -> None:
        """Find the rows of a failed call that HBase rejects, and write the others."""
        if has_java_exception(error, "NoSuchColumnFamilyException"):  # the table was altered
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
        self._reject(row, f"rejected by HBase: {first_line(error)}")


def _drop_missing_families(rows: RowMutations, present: frozenset[bytes]) -> RowMutations:
    kept = {
        row: {column: value for column, value in columns.items() if column.partition(b":")[0] in present}
        for row, columns in rows.items()
    }
    return {row: columns for row, columns in kept.items() if columns}


def _send_action(
    table: bytes, requests: list[MutateRowsCall]
) -> Callable[[GatewayConnection], list[tuple[MutateRowsCall, Exception]]]:
    """Return the action that sends calls and returns those with permanent errors."""

    def send(link: GatewayConnection) -> list[tuple[MutateRowsCall, Exception]]:
        client = link.client
        failed: list[tuple[MutateRowsCall, Exception]] = []
        transient: Exception | None = None
        for request in requests:
            link.send_rows(table, request.timestamp, request.rows)
        for request in requests:
            try:
                client._recv("mutateRowsTs")
            except SERVER_ERRORS as error:
                if is_permanent(error):
                    failed.append((request, error))
                else:
                    transient = error
        if transient is not None:
            client.getColumnDescriptors(
                table
            )  # raises if the table is gone, which the response to a write does not say
            raise transient  # all calls are retried, which is idempotent
        return failed

    return send
