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

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.protocols.address_filter import parse_host_address
from nutch2py.fetcher.runtime.fd_budget import probe_socket_error
from nutch2py.url.host_resolver import HostsFile

RESOLVER_CHOICES = ("c-ares", "system")
"""Values of ``http.dns.resolver``."""
_NOT_FOUND_CODES = frozenset({ARES_ENOTFOUND, ARES_ENODATA, ARES_EBADNAME})
_MAX_CACHED_NAMES = 20_000  # remembered
_MAX_ADDRESSES = 8  # of a name and family
_MAX_NAME_LENGTH = 255
_MIN_TTL, _MAX_TTL = 5, 86_400
"""Seconds that an answer is remembered at least (``/etc/hosts`` gives no TTL) and at most."""
_NOT_FOUND_TTL, _UNANSWERED_TTL = 60, 10
_SECOND_FAMILY_DELAY = 0.05
"""Seconds that addresses of the first family wait for those of the second, as RFC 8305 has it."""
_RETRY_DELAY, _MAX_RETRY_DELAY = 1.0, 4.0
"""Seconds before a name of which DNS did not say where it is is asked for again: at first, and at most."""
_PARALLEL_RETRY_DELAY = 3.0  # seconds without an answer after which a name is asked for again beside
_QUERIES_PER_RESET = 100
"""Questions after which c-ares is to forget answers: each is kept whole (64 KiB are 1 MB there) for an hour."""
_MAX_ISOLATED = 64  # names at once that are asked for with sockets of their own
_NO_SORT = 1 << 7  # ARES_AI_NOSORT: c-ares would connect a socket to each address, of which there may be thousands
_FIRST_TIMEOUT, _MAX_TRIES = 2.0, 6
"""Seconds for the first question of all. Later ones wait as long as the server's earlier answers make likely, 250 ms at
least, and twice as long each time: six, as a server that is quick for most names takes seconds for some."""


class DnsResult(NamedTuple):
    """What DNS said of a name. ``addresses``: none when ``error`` says why; ``expires_at``: by :func:`time.monotonic`."""

    addresses: tuple[str, ...]
    error: socket.gaierror | None
    expires_at: float

    @property
    def is_unanswered(self) -> bool:
        """Whether nobody could say."""
        return self.error is not None and self.error.errno == socket.EAI_AGAIN


@dataclass
class DnsStats:
    """What was asked of DNS. ``lookups``: how many lookups; ``total_seconds``: that they took together, ``slowest_seconds``: one."""

    lookups: int = 0
    unknown: int = 0
    unanswered: int = 0
    retried: int = 0
    total_seconds: float = 0.0
    slowest_seconds: float = 0.0

    def __str__(self) -> str:
        mean = 1000 * self.total_seconds / max(1, self.lookups)
        return (
            f"DNS: {self.lookups} names, {self.unknown} unknown, {self.unanswered} without an answer, {self.retried} asked "
            f"again, {mean:.0f} ms on average, {1000 * self.slowest_seconds:.0f} ms at most"
        )


class _AresResolver(aiodns.DNSResolver):
    """Asks DNS, and remembers little of it."""

    _query_count = 0

    def query_addresses(self, name: str, family: socket.AddressFamily) -> asyncio.Future[Any]:
        self._query_count += 1
        if self._query_count % _QUERIES_PER_RESET == 0:
            self._channel.reinit()  # beside reading the settings anew, the one way to have c-ares forget
        return self.getaddrinfo(name, family, type=socket.SOCK_STREAM, flags=_NO_SORT)


class DnsCache:
    """The addresses of hosts, for the one event loop in which it is first asked.

    ``hosts_file`` comes before DNS. ``servers``: as ``address`` or ``address:port``, none for those of the system.
    ``seconds``: for one name in all. ``uses_cares`` is False where each library is to ask the system by itself.
    """

    def __init__(
        self, hosts_file: HostsFile, servers: Sequence[str] = (), timeout: float = 20.0, *, uses_cares: bool = True
    ) -> None:
        self.hosts_file, self.uses_cares = hosts_file, uses_cares
        self.stats = DnsStats()
        self._servers, self._timeout = servers, timeout
        self._cache: OrderedDict[str, DnsResult] = OrderedDict()
        self._pending: dict[str, asyncio.Task[DnsResult]] = {}
        self._resolver: _AresResolver | None = None
        self._isolated_resolvers: dict[str, _AresResolver] = {}
        """Of names that got a malformed answer: c-ares fails whatever else was asked with the same socket, too."""
        self._has_ipv6 = _has_ipv6()

    @classmethod
    def from_conf(cls, conf: Configuration) -> DnsCache:
        """Read ``http.hosts.file`` and ``http.dns.*``; ConfigurationError when one is malformed."""
        resolver = conf.get_trimmed("http.dns.resolver", RESOLVER_CHOICES[0])
        if resolver not in RESOLVER_CHOICES:
            raise ConfigurationError(f"http.dns.resolver is {resolver!r}: write {' or '.join(RESOLVER_CHOICES)}")
        servers = conf.get_strings("http.dns.servers")
        for server in servers:
            _validate_server(server)
        seconds = conf.get_float("http.dns.timeout", 20.0)
        return cls(HostsFile.from_conf(conf), servers, seconds, uses_cares=resolver == RESOLVER_CHOICES[0])

    def __deepcopy__(self, memo: dict[int, object]) -> DnsCache:
        """Return itself: Scrapy copies all settings of a crawl, which is to have these names in common."""
        return self

    def get_cached(self, host: str) -> tuple[str, ...] | None:
        """Return the addresses of a host as far as nobody has to be asked, None otherwise.

        Empty for one that is an address itself. Raises :class:`socket.gaierror` for a name that was asked for in vain.
        """
        found = self.hosts_file.lookup(host)
        if found:
            return tuple(found)
        name = host.lower()
        remembered = self._cache.get(name)
        if remembered is not None and remembered.expires_at > time.monotonic():
            if remembered.error is not None:
                raise _copy_error(remembered.error)
            return remembered.addresses
        return () if not self.uses_cares or parse_host_address(host) is not None else None

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, IPv4 first; empty when it is an address itself, or is not ours to ask for.

        However many ask for a name, DNS is asked once. Raises :class:`socket.gaierror`: EAI_NONAME when there is no
        such name or it has no address, EAI_AGAIN when nobody could say.
        """
        known = self.get_cached(host)
        if known is not None:
            return known
        name = host.lower()
        if len(name) > _MAX_NAME_LENGTH:
            raise _not_found_error(host)
        task = self._pending.get(name)
        if task is None:
            task = self._pending[name] = asyncio.ensure_future(self._resolve_uncached(name))
            task.add_done_callback(lambda _: self._pending.pop(name, None))
        remembered = await asyncio.shield(task)  # who is cancelled does not take it from the others
        if remembered.error is not None:
            raise _copy_error(remembered.error)
        return remembered.addresses

    async def close(self) -> None:
        """End the lookups under way."""
        for task in list(self._pending.values()):
            task.cancel()
        self._pending.clear()
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    async def _resolve_uncached(self, name: str) -> DnsResult:
        began = time.monotonic()
        self.stats.lookups += 1
        try:
            remembered = await self._query_with_retries(name)
        finally:
            if alone := self._isolated_resolvers.pop(name, None):
                await alone.close()
        took = time.monotonic() - began
        self.stats.total_seconds += took
        self.stats.slowest_seconds = max(self.stats.slowest_seconds, took)
        if remembered.error is not None:
            if remembered.is_unanswered:
                self.stats.unanswered += 1
            else:
                self.stats.unknown += 1
        self._cache[name] = remembered
        self._cache.move_to_end(name)
        if len(self._cache) > _MAX_CACHED_NAMES:
            self._cache.popitem(last=False)
        return remembered

    async def _query_with_retries(self, name: str) -> DnsResult:
        """Ask again and again for ``http.dns.timeout``, then once more: a server may lose packets, or begin anew."""
        loop = asyncio.get_running_loop()
        end, pause, asks = loop.time() + self._timeout, _RETRY_DELAY, 0
        under_way: set[asyncio.Future[DnsResult]] = set()
        try:
            while (left := end - loop.time()) > 0:
                self.stats.retried += asks == 1
                asks += 1
                under_way.add(asyncio.ensure_future(self._query_families(name)))
                # an ask that takes long goes on beside the next
                ended, under_way = await asyncio.wait(
                    under_way, timeout=min(left, _PARALLEL_RETRY_DELAY), return_when=asyncio.FIRST_COMPLETED
                )
                for answer in (task.result() for task in ended):
                    if not answer.is_unanswered:
                        return answer
                if ended:
                    await asyncio.sleep(max(0.0, min(pause, end - loop.time())))
                    pause = min(2 * pause, _MAX_RETRY_DELAY)
        finally:
            for task in under_way:
                task.cancel()
        self.stats.retried += asks <= 1
        await asyncio.sleep(_RETRY_DELAY)
        return await self._query_with_timeout(name)

    async def _query_with_timeout(self, name: str) -> DnsResult:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._query_families(name)
        except TimeoutError:
            return _failed_result(name, f"no answer for {self._timeout:g} s (http.dns.timeout)")

    async def _query_families(self, name: str) -> DnsResult:
        """Ask for addresses of both families; what is not needed is not waited for."""
        first = asyncio.ensure_future(self._query_family(name, socket.AF_INET))
        second = asyncio.ensure_future(self._query_family(name, socket.AF_INET6)) if self._has_ipv6 else None
        try:
            answer = await first
            if answer.is_unanswered and second is None:  # there may be addresses, and no others can be reached
                return answer
            if not answer.addresses:
                other = await (second or self._query_family(name, socket.AF_INET6))
                if other.addresses and answer.is_unanswered:
                    return other._replace(expires_at=time.monotonic() + _UNANSWERED_TTL)
                return other if other.addresses or other.is_unanswered else answer
            if second is not None:
                with suppress(TimeoutError):
                    other = await asyncio.wait_for(asyncio.shield(second), _SECOND_FAMILY_DELAY)
                    if other.addresses:
                        until = min(answer.expires_at, other.expires_at)
                        return DnsResult(answer.addresses + other.addresses, None, until)
            return answer
        finally:
            for task in (first, second):
                if task is not None:
                    task.cancel()

    def _new_resolver(self) -> _AresResolver:
        return _AresResolver(self._servers or None, timeout=_FIRST_TIMEOUT, tries=_MAX_TRIES)

    async def _query_family(self, name: str, family: socket.AddressFamily) -> DnsResult:
        if self._resolver is None:
            self._resolver = self._new_resolver()
        try:
            answer = await self._isolated_resolvers.get(name, self._resolver).query_addresses(name, family)
        except DNSError as error:
            number = int(error.args[0])
            if (
                number == ARES_EBADRESP
                and name not in self._isolated_resolvers
                and len(self._isolated_resolvers) < _MAX_ISOLATED
            ):
                self._isolated_resolvers[name] = self._new_resolver()
                return await self._query_family(name, family)
            if number in _NOT_FOUND_CODES:
                return DnsResult((), _not_found_error(name), time.monotonic() + _NOT_FOUND_TTL)
            return _failed_result(name, str(error.args[-1]))
        nodes = [node for node in answer.nodes if node.family == family][:_MAX_ADDRESSES]
        if not nodes:
            return DnsResult((), _not_found_error(name), time.monotonic() + _NOT_FOUND_TTL)
        lives = min(max(_MIN_TTL, min(node.ttl for node in nodes)), _MAX_TTL)
        return DnsResult(tuple(node.addr[0].decode("ascii") for node in nodes), None, time.monotonic() + lives)


def _not_found_error(name: str) -> socket.gaierror:
    return socket.gaierror(socket.EAI_NONAME, f"DNS knows no address of {name[:_MAX_NAME_LENGTH]}")


def _failed_result(name: str, why: str) -> DnsResult:
    why = probe_socket_error() or why  # c-ares says of every socket that it cannot make that no server is there
    error = socket.gaierror(socket.EAI_AGAIN, f"DNS did not say where {name} is: {why}")
    return DnsResult((), error, time.monotonic() + _UNANSWERED_TTL)


def _copy_error(error: socket.gaierror) -> socket.gaierror:
    """Return the error anew: one that is raised again and again would keep every traceback."""
    return socket.gaierror(*error.args)


def _validate_server(server: str) -> None:
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
