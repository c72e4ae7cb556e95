"""Names of hosts to addresses, apart from transfers: asked of DNS without a thread each, remembered for their TTL.

libcurl resolves a name within the time of the transfer that needs it first, in a thread: of two hundred cold names at
once many are given up as servers that are silent. Here c-ares asks (through aiodns): ``/etc/hosts``, then the servers
of ``http.dns.servers`` or of the system, by UDP, by TCP where an answer is cut, each server in its turn. The handlers
get addresses, and connect to those and no other; the address gate judges each when its socket is opened.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, NamedTuple

import aiodns
from aiodns.error import ARES_EBADNAME, ARES_EBADRESP, ARES_ENODATA, ARES_ENOTFOUND, DNSError

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.descriptors import lacking_now
from nutch2py.fetcher.gate import address_of
from nutch2py.url.resolve import HostsFile

RESOLVERS = ("c-ares", "system")
"""Values of ``http.dns.resolver``."""
_NOT_THERE = frozenset({ARES_ENOTFOUND, ARES_ENODATA, ARES_EBADNAME})
_MOST_NAMES = 20_000  # remembered
_MOST_ADDRESSES = 8  # of a name and family
_LONGEST_NAME = 255
_SHORTEST, _LONGEST = 5, 86_400
"""Seconds that an answer is remembered at least (``/etc/hosts`` gives no TTL) and at most."""
_NOT_THERE_FOR, _UNANSWERED_FOR = 60, 10
_SECOND_FAMILY = 0.05
"""Seconds that addresses of the first family wait for those of the second, as RFC 8305 has it."""
_AGAIN, _MOST_AGAIN = 1.0, 4.0
"""Seconds before a name of which DNS did not say where it is is asked for again: at first, and at most."""
_SILENCE = 3.0  # seconds without an answer after which a name is asked for again beside
_ASKS_KEPT = 100
"""Questions after which c-ares is to forget answers: each is kept whole (64 KiB are 1 MB there) for an hour."""
_MOST_ALONE = 64  # names at once that are asked for with sockets of their own
_NO_SORT = 1 << 7  # ARES_AI_NOSORT: c-ares would connect a socket to each address, of which there may be thousands
_FIRST_TIMEOUT, _TRIES = 2.0, 6
"""Seconds for the first question of all. Later ones wait as long as the server's earlier answers make likely, 250 ms at
least, and twice as long each time: six, as a server that is quick for most names takes seconds for some."""


class Remembered(NamedTuple):
    """What DNS said of a name. ``addresses``: none when ``error`` says why; ``until``: by :func:`time.monotonic`."""

    addresses: tuple[str, ...]
    error: socket.gaierror | None
    until: float

    @property
    def unanswered(self) -> bool:
        """Whether nobody could say."""
        return self.error is not None and self.error.errno == socket.EAI_AGAIN


@dataclass
class NameCounts:
    """What was asked of DNS. ``names``: how many lookups; ``seconds``: that they took together, ``slowest``: one."""

    names: int = 0
    unknown: int = 0
    unanswered: int = 0
    again: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def __str__(self) -> str:
        mean = 1000 * self.seconds / max(1, self.names)
        return (
            f"DNS: {self.names} names, {self.unknown} unknown, {self.unanswered} without an answer, {self.again} asked "
            f"again, {mean:.0f} ms on average, {1000 * self.slowest:.0f} ms at most"
        )


class _Resolver(aiodns.DNSResolver):
    """Asks DNS, and remembers little of it."""

    _asks = 0

    def ask(self, name: str, family: socket.AddressFamily) -> asyncio.Future[Any]:
        self._asks += 1
        if self._asks % _ASKS_KEPT == 0:
            self._channel.reinit()  # beside reading the settings anew, the one way to have c-ares forget
        return self.getaddrinfo(name, family, type=socket.SOCK_STREAM, flags=_NO_SORT)


class Names:
    """The addresses of hosts, for the one event loop in which it is first asked.

    ``hosts`` comes before DNS. ``servers``: as ``address`` or ``address:port``, none for those of the system.
    ``seconds``: for one name in all. ``own`` is False where each library is to ask the system by itself.
    """

    def __init__(
        self, hosts: HostsFile, servers: Sequence[str] = (), seconds: float = 20.0, *, own: bool = True
    ) -> None:
        self.hosts, self.own = hosts, own
        self.counts = NameCounts()
        self._servers, self._seconds = servers, seconds
        self._known: OrderedDict[str, Remembered] = OrderedDict()
        self._asked: dict[str, asyncio.Task[Remembered]] = {}
        self._resolver: _Resolver | None = None
        self._alone: dict[str, _Resolver] = {}
        """Of names that got a malformed answer: c-ares fails whatever else was asked with the same socket, too."""
        self._has_ipv6 = _has_ipv6()

    @classmethod
    def from_conf(cls, conf: Configuration) -> Names:
        """Read ``http.hosts.file`` and ``http.dns.*``; ConfigurationError when one is malformed."""
        resolver = conf.get_trimmed("http.dns.resolver", RESOLVERS[0])
        if resolver not in RESOLVERS:
            raise ConfigurationError(f"http.dns.resolver is {resolver!r}: write {' or '.join(RESOLVERS)}")
        servers = conf.get_strings("http.dns.servers")
        for server in servers:
            _check_server(server)
        seconds = conf.get_float("http.dns.timeout", 20.0)
        return cls(HostsFile.from_conf(conf), servers, seconds, own=resolver == RESOLVERS[0])

    def __deepcopy__(self, memo: dict[int, object]) -> Names:
        """Return itself: Scrapy copies all settings of a crawl, which is to have these names in common."""
        return self

    def known(self, host: str) -> tuple[str, ...] | None:
        """Return the addresses of a host as far as nobody has to be asked, None otherwise.

        Empty for one that is an address itself. Raises :class:`socket.gaierror` for a name that was asked for in vain.
        """
        found = self.hosts.lookup(host)
        if found:
            return tuple(found)
        name = host.lower()
        remembered = self._known.get(name)
        if remembered is not None and remembered.until > time.monotonic():
            if remembered.error is not None:
                raise _fresh(remembered.error)
            return remembered.addresses
        return () if not self.own or address_of(host) is not None else None

    async def lookup(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, IPv4 first; empty when it is an address itself, or is not ours to ask for.

        However many ask for a name, DNS is asked once. Raises :class:`socket.gaierror`: EAI_NONAME when there is no
        such name or it has no address, EAI_AGAIN when nobody could say.
        """
        known = self.known(host)
        if known is not None:
            return known
        name = host.lower()
        if len(name) > _LONGEST_NAME:
            raise _unknown(host)
        task = self._asked.get(name)
        if task is None:
            task = self._asked[name] = asyncio.ensure_future(self._ask(name))
            task.add_done_callback(lambda _: self._asked.pop(name, None))
        remembered = await asyncio.shield(task)  # who is cancelled does not take it from the others
        if remembered.error is not None:
            raise _fresh(remembered.error)
        return remembered.addresses

    async def close(self) -> None:
        """End the lookups under way."""
        for task in list(self._asked.values()):
            task.cancel()
        self._asked.clear()
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    async def _ask(self, name: str) -> Remembered:
        began = time.monotonic()
        self.counts.names += 1
        try:
            remembered = await self._patiently(name)
        finally:
            if alone := self._alone.pop(name, None):
                await alone.close()
        took = time.monotonic() - began
        self.counts.seconds += took
        self.counts.slowest = max(self.counts.slowest, took)
        if remembered.error is not None:
            if remembered.unanswered:
                self.counts.unanswered += 1
            else:
                self.counts.unknown += 1
        self._known[name] = remembered
        self._known.move_to_end(name)
        if len(self._known) > _MOST_NAMES:
            self._known.popitem(last=False)
        return remembered

    async def _patiently(self, name: str) -> Remembered:
        """Ask again and again for ``http.dns.timeout``, then once more: a server may lose packets, or begin anew."""
        loop = asyncio.get_running_loop()
        end, pause, asks = loop.time() + self._seconds, _AGAIN, 0
        under_way: set[asyncio.Future[Remembered]] = set()
        try:
            while (left := end - loop.time()) > 0:
                self.counts.again += asks == 1
                asks += 1
                under_way.add(asyncio.ensure_future(self._both(name)))
                # an ask that takes long goes on beside the next
                ended, under_way = await asyncio.wait(
                    under_way, timeout=min(left, _SILENCE), return_when=asyncio.FIRST_COMPLETED
                )
                for answer in (task.result() for task in ended):
                    if not answer.unanswered:
                        return answer
                if ended:
                    await asyncio.sleep(max(0.0, min(pause, end - loop.time())))
                    pause = min(2 * pause, _MOST_AGAIN)
        finally:
            for task in under_way:
                task.cancel()
        self.counts.again += asks <= 1
        await asyncio.sleep(_AGAIN)
        return await self._bounded(name)

    async def _bounded(self, name: str) -> Remembered:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._both(name)
        except TimeoutError:
            return _failed(name, f"no answer for {self._seconds:g} s (http.dns.timeout)")

    async def _both(self, name: str) -> Remembered:
        """Ask for addresses of both families; what is not needed is not waited for."""
        first = asyncio.ensure_future(self._family(name, socket.AF_INET))
        second = asyncio.ensure_future(self._family(name, socket.AF_INET6)) if self._has_ipv6 else None
        try:
            answer = await first
            if answer.unanswered and second is None:  # there may be addresses, and no others can be reached
                return answer
            if not answer.addresses:
                other = await (second or self._family(name, socket.AF_INET6))
                if other.addresses and answer.unanswered:
                    return other._replace(until=time.monotonic() + _UNANSWERED_FOR)
                return other if other.addresses or other.unanswered else answer
            if second is not None:
                with suppress(TimeoutError):
                    other = await asyncio.wait_for(asyncio.shield(second), _SECOND_FAMILY)
                    if other.addresses:
                        until = min(answer.until, other.until)
                        return Remembered(answer.addresses + other.addresses, None, until)
            return answer
        finally:
            for task in (first, second):
                if task is not None:
                    task.cancel()

    def _new_resolver(self) -> _Resolver:
        return _Resolver(self._servers or None, timeout=_FIRST_TIMEOUT, tries=_TRIES)

    async def _family(self, name: str, family: socket.AddressFamily) -> Remembered:
        if self._resolver is None:
            self._resolver = self._new_resolver()
        try:
            answer = await self._alone.get(name, self._resolver).ask(name, family)
        except DNSError as error:
            number = int(error.args[0])
            if number == ARES_EBADRESP and name not in self._alone and len(self._alone) < _MOST_ALONE:
                self._alone[name] = self._new_resolver()
                return await self._family(name, family)
            if number in _NOT_THERE:
                return Remembered((), _unknown(name), time.monotonic() + _NOT_THERE_FOR)
            return _failed(name, str(error.args[-1]))
        nodes = [node for node in answer.nodes if node.family == family][:_MOST_ADDRESSES]
        if not nodes:
            return Remembered((), _unknown(name), time.monotonic() + _NOT_THERE_FOR)
        lives = min(max(_SHORTEST, min(node.ttl for node in nodes)), _LONGEST)
        return Remembered(tuple(node.addr[0].decode("ascii") for node in nodes), None, time.monotonic() + lives)


def _unknown(name: str) -> socket.gaierror:
    return socket.gaierror(socket.EAI_NONAME, f"DNS knows no address of {name[:_LONGEST_NAME]}")


def _failed(name: str, why: str) -> Remembered:
    why = lacking_now() or why  # c-ares says of every socket that it cannot make that no server is there
    error = socket.gaierror(socket.EAI_AGAIN, f"DNS did not say where {name} is: {why}")
    return Remembered((), error, time.monotonic() + _UNANSWERED_FOR)


def _fresh(error: socket.gaierror) -> socket.gaierror:
    """Return the error anew: one that is raised again and again would keep every traceback."""
    return socket.gaierror(*error.args)


def _check_server(server: str) -> None:
    """Raise ConfigurationError unless ``server`` is an address, ``address:port`` or ``[address]:port``."""
    address, _, port = server.rpartition(":") if server.count(":") == 1 or "]:" in server else (server, "", "53")
    with suppress(ValueError):
        ip_address(address.strip("[]"))
        if 0 < int(port) < 1 << 16:
            return
    raise ConfigurationError(f"http.dns.servers holds {server!r}: write addresses, each with :PORT where it is not 53")


def _has_ipv6() -> bool:
    """Tell whether this machine has a way to the IPv6 internet; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("2001:4860:4860::8888", 53))  # connecting a datagram socket asks the routing table alone
    except OSError:
        return False
    return True
