"""Pool of connections to the Thrift gateways, with load balancing: calls that fail use another gateway.

It avoids known failures of happybase (``python-happybase/happybase`` issues 60, 130, 133, 172, 225, 257): a connection
with a transport error is never reused, idle connections are replaced before a gateway closes them, no generator holds a
connection while its caller runs, and a child process never uses connections of its parent.
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

from nutch2py.support.invariants import not_none
from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    CALL_ERRORS,
    SERVER_ERRORS,
    is_gateway_lost,
    is_permanent,
)
from nutch2py.table.hbase.thrift_client.hbase_retry_policy import HBaseRetryPolicy
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseSettings

T = TypeVar("T")


def is_local_host(host: str) -> bool:
    """Return whether a gateway is on this machine, by its name or by an address that can be bound.

    No name is resolved, so that slow DNS for one of many gateways does not delay every task.
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


class ThriftGatewayPool:
    """The gateways of one store; thread-safe, and usable after a fork."""

    def __init__(self, addresses: tuple[GatewayAddress, ...], settings: HBaseSettings, table: str, where: str) -> None:
        self.addresses, self.settings, self.table, self.where = addresses, settings, table, where
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        self._idle: list[GatewayConnection] = []
        self._failed_until: dict[GatewayAddress, float] = {}
        self._turn = random.randrange(len(addresses))  # noqa: S311 - spreads the load

    def new_retry(self) -> HBaseRetryPolicy:
        """Return the retry policy for one call to the table."""
        return HBaseRetryPolicy(self.table, self.where, self.settings.max_wait, self.has_live_gateway)

    def has_live_gateway(self) -> bool:
        """Return whether a gateway has not failed recently."""
        now = time.monotonic()
        return any(self._failed_until.get(address, 0) <= now for address in self.addresses)

    @cached_property
    def _local_and_remote(self) -> list[list[GatewayAddress]]:
        """Gateways on this machine, which are closest to its region servers, and the others."""
        local = [address for address in self.addresses if is_local_host(address.host)]
        return [local, [address for address in self.addresses if address not in local]]

    def _next_address(self) -> GatewayAddress:
        """Return the next gateway in turn that has not failed recently, preferably one on this machine.

        If all have failed, return the one with the oldest failure.
        """
        now = time.monotonic()
        self._turn += 1
        turns = [some[(self._turn + i) % len(some)] for some in self._local_and_remote for i in range(len(some))]
        return next(
            (address for address in turns if self._failed_until.get(address, 0) <= now),
            min(turns, key=lambda address: self._failed_until.get(address, 0)),
        )

    def borrow(self, address: GatewayAddress | None = None) -> GatewayConnection:
        """Return a connection (to ``address``, or to any gateway) for exclusive use until it is given back."""
        with self._lock:
            if self._process_id != os.getpid():
                for link in self._idle:
                    link.detach()
                self._idle, self._process_id = [], os.getpid()
                self._turn = random.randrange(len(self.addresses))  # noqa: S311 - spreads the load
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
        address = not_none(address, "address")
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
        """Run the block with a pooled connection (to ``address``, or to any gateway)."""
        link = self.borrow(address)
        with self.return_after(link):
            yield link

    @contextmanager
    def return_after(self, link: GatewayConnection, keep: bool = False) -> Iterator[None]:
        """Return a borrowed connection to the pool after the block; with ``keep`` only if the block fails."""
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
                else:  # a restarted gateway has closed all of them
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
        """Return ``action(connection)``, with retries; the action must be idempotent.

        Raises:
            StoreError: All attempts have failed.
            HBaseError, IllegalArgument, AlreadyExists: The server has responded with a permanent error.
        """
        retry = self.new_retry()
        while True:
            try:
                with retry.attempt(), self.connection() as link:
                    return action(link)
            except CALL_ERRORS as error:
                if isinstance(error, SERVER_ERRORS) and is_permanent(error):
                    retry.succeeded()
                    raise
                retry.handle_failure(error)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            doomed, self._idle = self._idle, []
        for link in doomed:
            if self._process_id == os.getpid():
                link.close()
            else:
                link.detach()
