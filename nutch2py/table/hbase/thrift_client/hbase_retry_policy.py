"""Retry policy of HBase calls while gateways or region servers are unavailable (``service.wait.seconds``)."""

from __future__ import annotations

from collections.abc import Callable

from nutch2py.support.retry import ServiceRetry
from nutch2py.table.hbase.thrift_client.hbase_errors import first_line, is_gateway_lost, is_permanent, to_store_error


class HBaseRetryPolicy(ServiceRetry):
    """Retries of one call to a table; :meth:`handle_failure` raises after the last attempt.

    Args:
        table: Name of the table, for messages.
        where: Addresses of the gateways, for messages.
        max_seconds: Time limit of the retries.
        has_live_gateway: Returns whether another gateway is available; if so, the call is retried at once.
    """

    def __init__(self, table: str, where: str, max_seconds: float, has_live_gateway: Callable[[], bool]) -> None:
        super().__init__(f"HBase at {where}", max_seconds, "storage.data.store")
        self._table, self._where, self._has_live_gateway = table, where, has_live_gateway

    def handle_failure(self, error: BaseException) -> None:
        """Wait before the next attempt, or raise :class:`~nutch2py.errors.StoreError`."""
        if is_permanent(error):
            self.succeeded()  # the server has responded
            raise to_store_error(error, self._table, self._where) from error
        lost = is_gateway_lost(error)
        why = f"no gateway: {first_line(error)}" if lost else first_line(error)
        if not self.wait_before_retry(why, immediately=lost and self._has_live_gateway()):
            raise to_store_error(error, self._table, self._where) from error
