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

from nutch2py.outages import Outage
from nutch2py.table.hbase.connection import Link
from nutch2py.table.hbase.failures import ANSWERS, FAILURES, explained, first_line, gateway_lost, hopeless
from nutch2py.table.hbase.hbase_settings import Address, Settings

T = TypeVar("T")


def is_here(host: str) -> bool:
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


class Patience(Outage):
    """Tries in a row at a table behind gateways; :meth:`after` gives up by raising."""

    def __init__(self, gateways: Gateways) -> None:
        super().__init__(f"HBase at {gateways.where}", gateways.settings.wait, "storage.data.store")
        self._gateways = gateways

    def after(self, error: BaseException) -> None:
        """Wait before the next try, or raise :class:`StoreError`."""
        gateways = self._gateways
        if hopeless(error):
            self.over()  # it has answered
            raise explained(error, gateways.table, gateways.where) from error
        lost = gateway_lost(error)
        why = f"no gateway: {first_line(error)}" if lost else first_line(error)
        if not self.failed(why, at_once=lost and gateways.another_lives()):
            raise explained(error, gateways.table, gateways.where) from error


class Gateways:
    """The gateways of one store. All methods may be called by several threads, and after a fork."""

    def __init__(self, addresses: tuple[Address, ...], settings: Settings, table: str, where: str) -> None:
        self.addresses, self.settings, self.table, self.where = addresses, settings, table, where
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._idle: list[Link] = []
        self._resting: dict[Address, float] = {}
        self._turn = random.randrange(len(addresses))

    def another_lives(self) -> bool:
        """Tell whether there is a gateway that has not failed lately."""
        now = time.monotonic()
        return any(self._resting.get(address, 0) <= now for address in self.addresses)

    @cached_property
    def _near_and_far(self) -> list[list[Address]]:
        """Those on this machine, and the others: what region servers here hold takes the short way by the first."""
        near = [address for address in self.addresses if is_here(address.host)]
        return [near, [address for address in self.addresses if address not in near]]

    def _choose(self) -> Address:
        """Return the next gateway in turn that is not resting, one on this machine if there is any.

        When all are resting, it is the one that has rested longest.
        """
        now = time.monotonic()
        self._turn += 1
        turns = [some[(self._turn + i) % len(some)] for some in self._near_and_far for i in range(len(some))]
        return next(
            (address for address in turns if self._resting.get(address, 0) <= now),
            min(turns, key=lambda address: self._resting.get(address, 0)),
        )

    def borrow(self, address: Address | None = None) -> Link:
        """Return a connection (to ``address``, or to any gateway) that is the caller's until it is given back."""
        with self._lock:
            if self._process != os.getpid():
                for link in self._idle:
                    link.leave()
                self._idle, self._process = [], os.getpid()
                self._turn = random.randrange(len(self.addresses))
            oldest = time.monotonic() - self.settings.idle
            stale = [link for link in self._idle if link.used < oldest]
            self._idle = [link for link in self._idle if link.used >= oldest]
            found = next((link for link in reversed(self._idle) if address in (None, link.address)), None)
            if found is not None:
                self._idle.remove(found)
            elif address is None:
                address = self._choose()
        for link in stale:
            link.close()
        if found is not None:
            return found
        assert address is not None
        try:
            return Link(address, self.settings)
        except FAILURES:
            self._note_dead(address)
            raise

    def _note_dead(self, address: Address) -> None:
        with self._lock:
            self._resting[address] = time.monotonic() + self.settings.rest
        self._drop_idle(address)

    @contextmanager
    def link(self, address: Address | None = None) -> Iterator[Link]:
        """Lend a connection (to ``address``, or to any gateway); it is kept unless its state is unknown afterwards."""
        link = self.borrow(address)
        with self.returning(link):
            yield link

    @contextmanager
    def returning(self, link: Link, keep: bool = False) -> Iterator[None]:
        """Take back a borrowed connection after the block; with ``keep`` only when the block fails."""
        try:
            yield
        except ANSWERS:
            self._give_back(link)
            raise
        except FAILURES as error:
            link.close()
            if gateway_lost(error):
                if link.fresh:
                    self._note_dead(link.address)
                else:  # a gateway that was started anew has cut all of them
                    self._drop_idle(link.address)
            raise
        except BaseException:
            link.close()
            raise
        else:
            if not keep:
                self._give_back(link)

    def _drop_idle(self, address: Address) -> None:
        with self._lock:
            doomed = [link for link in self._idle if link.address == address]
            self._idle = [link for link in self._idle if link.address != address]
        for link in doomed:
            link.close()

    def _give_back(self, link: Link) -> None:
        link.used, link.fresh = time.monotonic(), False
        with self._lock:
            self._resting.pop(link.address, None)
            if self._process == os.getpid():
                self._idle.append(link)

    def call(self, action: Callable[[Link], T]) -> T:
        """Return ``action(connection)``, tried again while that can help; it must not matter if it is done twice.

        Raises :class:`nutch2py.errors.StoreError` when it cannot be done, or the server's own error (``ANSWERS``) when
        trying again could not help.
        """
        patience = Patience(self)
        while True:
            try:
                with patience.asking(), self.link() as link:
                    return action(link)
            except FAILURES as error:
                if isinstance(error, ANSWERS) and hopeless(error):
                    patience.over()
                    raise
                patience.after(error)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            doomed, self._idle = self._idle, []
        for link in doomed:
            if self._process == os.getpid():
                link.close()
            else:
                link.leave()
