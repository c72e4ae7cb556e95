"""Connections to the Thrift gateways: kept while they are good, replaced when they are not, spread over all gateways.

What is known of happybase's failures (``python-happybase/happybase`` issues 60, 130, 133, 172, 225, 257) ends here:
a connection that had any transport error is never used again, one that was idle for long is renewed before a gateway
closes it, no generator holds one while its caller works, and a child process never uses those of its parent.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from ipaddress import ip_address
from typing import TypeVar

from nutch2py.support.retry import ServiceRetry
from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    CALL_ERRORS,
    SERVER_ERRORS,
    first_line,
    is_gateway_lost,
    is_permanent,
    to_store_error,
)
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseSettings

T = TypeVar("T")


def is_local_host(host: str) -> bool:
    """Tell whether a gateway is on this machine: by its name, or by an address that can be listened at.

    No name is looked up: one of many gateways that DNS is slow to find shall not keep every task waiting.
    """
    try:
        address = ip_address(host)
    except ValueError:
        own = socket.gethostname()
        return host in ("localhost", own) or host.startswith(f"{own}.") or own.startswith(f"{host}.")
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


class HBaseRetryPolicy(ServiceRetry):
    """Tries in a row at a table behind gateways; :meth:`handle_failure` gives up by raising."""

    def __init__(self, gateways: Gateways) -> None:
        super().__init__(f"HBase at {gateways.where}", gateways.settings.max_wait, "storage.data.store")
        self._gateways = gateways

    def handle_failure(self, error: BaseException) -> None:
        """Wait before the next try, or raise :class:`StoreError`."""
        gateways = self._gateways
        if is_permanent(error):
            self.succeeded()  # it has answered
            raise to_store_error(error, gateways.table, gateways.where) from error
        lost = is_gateway_lost(error)
        why = f"no gateway: {first_line(error)}" if lost else first_line(error)
        if not self.wait_before_retry(why, immediately=lost and gateways.has_live_gateway()):
            raise to_store_error(error, gateways.table, gateways.where) from error


class Gateways:
    """The gateways of one store. All methods may be called by several threads, and after a fork."""

    def __init__(self, addresses: tuple[GatewayAddress, ...], settings: HBaseSettings, table: str, where: str) -> None:
        self.addresses, self.settings, self.table, self.where = addresses, settings, table, where
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        self._idle: list[GatewayConnection] = []
        self._failed_until: dict[GatewayAddress, float] = {}
        self._turn = random.randrange(len(addresses))

    def has_live_gateway(self) -> bool:
        """Tell whether there is a gateway that has not failed lately."""
        now = time.monotonic()
        return any(self._failed_until.get(address, 0) <= now for address in self.addresses)

    @cached_property
    def _local_and_remote(self) -> list[list[GatewayAddress]]:
        """Those on this machine, and the others: what region servers here hold takes the short way by the first."""
        near = [address for address in self.addresses if is_local_host(address.host)]
        return [near, [address for address in self.addresses if address not in near]]

    def _next_address(self) -> GatewayAddress:
        """Return the next gateway in turn that is not resting, one on this machine if there is any.

        When all are resting, it is the one that has rested longest.
        """
        now = time.monotonic()
        self._turn += 1
        turns = [some[(self._turn + i) % len(some)] for some in self._local_and_remote for i in range(len(some))]
        return next(
            (address for address in turns if self._failed_until.get(address, 0) <= now),
            min(turns, key=lambda address: self._failed_until.get(address, 0)),
        )

    def borrow(self, address: GatewayAddress | None = None) -> GatewayConnection:
        """Return a connection (to ``address``, or to any gateway) that is the caller's until it is given back."""
        with self._lock:
            if self._process_id != os.getpid():
                for link in self._idle:
                    link.detach()
                self._idle, self._process_id = [], os.getpid()
                self._turn = random.randrange(len(self.addresses))
            oldest = time.monotonic() - self.settings.max_idle
            stale = [link for link in self._idle if link.last_used < oldest]
            self._idle = [link for link in self._idle if link.last_used >= oldest]
            found = next((link for link in reversed(self._idle) if address in (None, link.address)), None)
            if found is not None:
                self._idle.remove(found)
            elif address is None:
                address = self._next_address()
        for link in stale:
            link.close()
        if found is not None:
            return found
        assert address is not None
        try:
            return GatewayConnection(address, self.settings)
        except CALL_ERRORS:
            self._mark_failed(address)
            raise

    def _mark_failed(self, address: GatewayAddress) -> None:
        with self._lock:
            self._failed_until[address] = time.monotonic() + self.settings.gateway_rest
        self._close_idle(address)

    @contextmanager
    def connection(self, address: GatewayAddress | None = None) -> Iterator[GatewayConnection]:
        """Lend a connection (to ``address``, or to any gateway); it is kept unless its state is unknown afterwards."""
        link = self.borrow(address)
        with self.return_after(link):
            yield link

    @contextmanager
    def return_after(self, link: GatewayConnection, keep: bool = False) -> Iterator[None]:
        """Take back a borrowed connection after the block; with ``keep`` only when the block fails."""
        try:
            yield
        except SERVER_ERRORS:
            self._give_back(link)
            raise
        except CALL_ERRORS as error:
            link.close()
            if is_gateway_lost(error):
                if link.is_new:
                    self._mark_failed(link.address)
                else:  # a gateway that was started anew has cut all of them
                    self._close_idle(link.address)
            raise
        except BaseException:
            link.close()
            raise
        else:
            if not keep:
                self._give_back(link)

    def _close_idle(self, address: GatewayAddress) -> None:
        with self._lock:
            doomed = [link for link in self._idle if link.address == address]
            self._idle = [link for link in self._idle if link.address != address]
        for link in doomed:
            link.close()

    def _give_back(self, link: GatewayConnection) -> None:
        link.last_used, link.is_new = time.monotonic(), False
        with self._lock:
            self._failed_until.pop(link.address, None)
            if self._process_id == os.getpid():
                self._idle.append(link)

    def call(self, action: Callable[[GatewayConnection], T]) -> T:
        """Return ``action(connection)``, tried again while that can help; it must not matter if it is done twice.

        Raises :class:`nutch2py.errors.StoreError` when it cannot be done, or the server's own error (``ANSWERS``) when
        trying again could not help.
        """
        patience = HBaseRetryPolicy(self)
        while True:
            try:
                with patience.attempt(), self.connection() as link:
                    return action(link)
            except CALL_ERRORS as error:
                if isinstance(error, SERVER_ERRORS) and is_permanent(error):
                    patience.succeeded()
                    raise
                patience.handle_failure(error)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            doomed, self._idle = self._idle, []
        for link in doomed:
            if self._process_id == os.getpid():
                link.close()
            else:
                link.detach()
