"""DNS cache of the fetcher: resolves hosts apart from transfers, without a thread per host.

libcurl resolves a host in a thread within the time of the first transfer that needs it: with two hundred uncached
hosts, many would fail as silent servers. Here c-ares (through aiodns) reads ``/etc/hosts``, then queries the servers of
``http.dns.servers`` or of the system, by UDP, by TCP if a response is truncated, each server in turn. The handlers
connect only to these addresses; the address filter checks each one when its socket is opened.
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
from nutch2py.fetcher.protocols.local_failures import DnsUnavailableError
from nutch2py.fetcher.runtime.fd_budget import probe_socket_error
from nutch2py.url.host_resolver import HostsFile

RESOLVER_CHOICES = ("c-ares", "system")
"""Values of ``http.dns.resolver``."""
_NOT_FOUND_CODES = frozenset({ARES_ENOTFOUND, ARES_ENODATA, ARES_EBADNAME})
MAX_CACHED_NAMES = 20_000
"""Hosts in the DNS cache."""
_MAX_ADDRESSES = 8  # per host and address family
_MAX_NAME_LENGTH = 255
_MIN_TTL, _MAX_TTL = 5, 86_400
"""Minimum (``/etc/hosts`` has no TTL) and maximum lifetime of a result, in seconds."""
_NOT_FOUND_TTL, _UNANSWERED_TTL = 60, 10
_SECOND_FAMILY_DELAY = 0.05
"""Time that addresses of the first family wait for those of the second, in seconds (RFC 8305)."""
_RETRY_DELAY, _MAX_RETRY_DELAY = 1.0, 4.0
"""Initial and maximum retry delay for failed DNS lookups, in seconds."""
_PARALLEL_RETRY_DELAY = 3.0  # seconds without a response before a parallel query
QUERIES_PER_RESET = 100
"""Queries between resets of c-ares, which keeps each response for an hour (64 KiB take 1 MB there)."""
_MAX_ISOLATED = 64  # hosts resolved concurrently with their own sockets
_NO_SORT = 1 << 7  # ARES_AI_NOSORT: c-ares would connect a socket to each of possibly thousands of addresses
_FIRST_TIMEOUT, _MAX_TRIES = 2.0, 6
"""Timeout of the first query in seconds, and tries per query.

Later timeouts follow the server's response times, at least 250 ms, and double with each try. Six tries, since a server
that is fast for most hosts takes seconds for some.
"""


class DnsResult(NamedTuple):
    """Result of a lookup: addresses, or an error; ``expires_at`` is a time of :func:`time.monotonic`."""

    addresses: tuple[str, ...]
    error: socket.gaierror | None
    expires_at: float

    @property
    def is_unanswered(self) -> bool:
        """Whether no server returned a definite result."""
        return self.error is not None and self.error.errno == socket.EAI_AGAIN


@dataclass
class DnsStats:
    """Statistics of lookups; ``total_seconds`` over all lookups, ``slowest_seconds`` of one."""

    lookups: int = 0
    unknown: int = 0
    unanswered: int = 0
    retried: int = 0
    total_seconds: float = 0.0
    slowest_seconds: float = 0.0

    def __str__(self) -> str:
        mean = 1000 * self.total_seconds / max(1, self.lookups)
        return (
            f"DNS: {self.lookups} names, {self.unknown} unknown, {self.unanswered} unanswered, {self.retried} retried, "
            f"{mean:.0f} ms on average, {1000 * self.slowest_seconds:.0f} ms at most"
        )


class _AresResolver(aiodns.DNSResolver):
    """A resolver that limits the memory of c-ares' own cache."""

    _query_count = 0

    def query_addresses(self, name: str, family: socket.AddressFamily) -> asyncio.Future[Any]:
        self._query_count += 1
        if self._query_count % QUERIES_PER_RESET == 0:
            self._channel.reinit()  # the only way to make c-ares drop its cache; it also reloads the settings
        return self.getaddrinfo(name, family, type=socket.SOCK_STREAM, flags=_NO_SORT)


class DnsCache:
    """Addresses of hosts, for the event loop in which it is first used.

    Args:
        hosts_file: Consulted before DNS.
        servers: ``address`` or ``address:port``; empty for the servers of the system.
        timeout: Total time for one host, in seconds.
        uses_cares: False if each library uses the system resolver itself.

    Attributes:
        results: Cached results by host, the oldest first; expired ones included.
        has_ipv6: Whether IPv6 addresses are reachable; else they are queried only for hosts without an IPv4 address.
    """

    def __init__(
        self, hosts_file: HostsFile, servers: Sequence[str] = (), timeout: float = 20.0, *, uses_cares: bool = True
    ) -> None:
        self.hosts_file, self.uses_cares = hosts_file, uses_cares
        self.stats = DnsStats()
        self._servers, self._timeout = servers, timeout
        self.results: OrderedDict[str, DnsResult] = OrderedDict()
        self._pending: dict[str, asyncio.Task[DnsResult]] = {}
        self._resolver: _AresResolver | None = None
        self._isolated_resolvers: dict[str, _AresResolver] = {}
        """Resolvers of hosts with malformed responses: c-ares fails all queries on the same socket."""
        self._answered_at = 0.0
        """Time of the last definite answer of a DNS server for any name."""
        self.has_ipv6 = has_ipv6()

    @classmethod
    def from_conf(cls, conf: Configuration) -> DnsCache:
        """Read ``http.hosts.file`` and ``http.dns.*``; raise ConfigurationError if one is malformed."""
        resolver = conf.get_trimmed("http.dns.resolver", RESOLVER_CHOICES[0])
        if resolver not in RESOLVER_CHOICES:
            raise ConfigurationError(f"http.dns.resolver is {resolver!r}: write {' or '.join(RESOLVER_CHOICES)}")
        servers = conf.get_strings("http.dns.servers")
        for server in servers:
            _validate_server(server)
        timeout = conf.get_float("http.dns.timeout", 20.0)
        return cls(HostsFile.from_conf(conf), servers, timeout, uses_cares=resolver == RESOLVER_CHOICES[0])

    def __deepcopy__(self, memo: dict[int, object]) -> DnsCache:
        """Return itself: Scrapy copies all settings of a crawl, which must share the cache."""
        return self

    def get_cached(self, host: str) -> tuple[str, ...] | None:
        """Return the addresses of a host if no query is needed, else None.

        Empty for an address literal. Raises :class:`socket.gaierror` for a failed lookup in the cache.
        """
        listed = self.hosts_file.lookup(host)
        if listed:
            return tuple(listed)
        name = host.lower()
        cached = self.results.get(name)
        if cached is not None and cached.expires_at > time.monotonic():
            if cached.error is not None:
                raise _copy_error(cached.error)
            return cached.addresses
        return () if not self.uses_cares or parse_host_address(host) is not None else None

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, IPv4 first; empty for an address literal or without c-ares.

        Concurrent callers share one lookup.

        Raises:
            DnsUnavailableError: EAI_AGAIN: no DNS server answered for any host during the lookup.
            socket.gaierror: EAI_NONAME if the host does not exist or has no address, EAI_AGAIN if the lookup failed
                while the servers answered for others, so that the domain's own servers are the cause.
        """
        cached = self.get_cached(host)
        if cached is not None:
            return cached
        name = host.lower()
        if len(name) > _MAX_NAME_LENGTH:
            raise _not_found_error(host)
        task = self._pending.get(name)
        if task is None:
            task = self._pending[name] = asyncio.ensure_future(self._resolve_uncached(name))
            task.add_done_callback(lambda _: self._pending.pop(name, None))
        result = await asyncio.shield(task)  # a cancelled caller must not cancel the others
        if result.error is not None:
            raise _copy_error(result.error)
        return result.addresses

    async def close(self) -> None:
        """Cancel the active lookups."""
        for task in list(self._pending.values()):
            task.cancel()
        self._pending.clear()
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    async def _resolve_uncached(self, name: str) -> DnsResult:
        started = time.monotonic()
        self.stats.lookups += 1
        try:
            result = await self._query_with_retries(name)
        finally:
            if resolver := self._isolated_resolvers.pop(name, None):
                await resolver.close()
        seconds = time.monotonic() - started
        self.stats.total_seconds += seconds
        self.stats.slowest_seconds = max(self.stats.slowest_seconds, seconds)
        if result.error is not None:
            if result.is_unanswered and self._answered_at < started:
                result = result._replace(error=DnsUnavailableError(*result.error.args))
            if result.is_unanswered:
                self.stats.unanswered += 1
            else:
                self.stats.unknown += 1
        self.results[name] = result
        self.results.move_to_end(name)
        if len(self.results) > MAX_CACHED_NAMES:
            self.results.popitem(last=False)
        return result

    async def _query_with_retries(self, name: str) -> DnsResult:
        """Retry for ``http.dns.timeout``, then one last time: a server may lose packets or restart."""
        loop = asyncio.get_running_loop()
        deadline, pause, query_count = loop.time() + self._timeout, _RETRY_DELAY, 0
        active: set[asyncio.Future[DnsResult]] = set()
        try:
            while (remaining := deadline - loop.time()) > 0:
                self.stats.retried += query_count == 1
                query_count += 1
                active.add(asyncio.ensure_future(self._query_families(name)))
                # a slow query continues in parallel with the next one
                finished, active = await asyncio.wait(
                    active, timeout=min(remaining, _PARALLEL_RETRY_DELAY), return_when=asyncio.FIRST_COMPLETED
                )
                for result in (task.result() for task in finished):
                    if not result.is_unanswered:
                        return result
                if finished:
                    await asyncio.sleep(max(0.0, min(pause, deadline - loop.time())))
                    pause = min(2 * pause, _MAX_RETRY_DELAY)
        finally:
            for task in active:
                task.cancel()
        self.stats.retried += query_count <= 1
        await asyncio.sleep(_RETRY_DELAY)
        return await self._query_with_timeout(name)

    async def _query_with_timeout(self, name: str) -> DnsResult:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._query_families(name)
        except TimeoutError:
            return _failed_result(name, f"no response for {self._timeout:g} s (http.dns.timeout)")

    async def _query_families(self, name: str) -> DnsResult:
        """Query both address families without waiting for unneeded results."""
        first = asyncio.ensure_future(self._query_family(name, socket.AF_INET))
        second = asyncio.ensure_future(self._query_family(name, socket.AF_INET6)) if self.has_ipv6 else None
        try:
            result = await first
            if result.is_unanswered and second is None:  # IPv4 addresses may exist, and IPv6 is not reachable
                return result
            if not result.addresses:
                other = await (second or self._query_family(name, socket.AF_INET6))
                if other.addresses and result.is_unanswered:
                    return other._replace(expires_at=time.monotonic() + _UNANSWERED_TTL)
                return other if other.addresses or other.is_unanswered else result
            if second is not None:
                with suppress(TimeoutError):
                    other = await asyncio.wait_for(asyncio.shield(second), _SECOND_FAMILY_DELAY)
                    if other.addresses:
                        expires_at = min(result.expires_at, other.expires_at)
                        return DnsResult(result.addresses + other.addresses, None, expires_at)
            return result
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
            response = await self._isolated_resolvers.get(name, self._resolver).query_addresses(name, family)
        except DNSError as error:
            code = int(error.args[0])
            if (
                code == ARES_EBADRESP
                and name not in self._isolated_resolvers
                and len(self._isolated_resolvers) < _MAX_ISOLATED
            ):
                self._isolated_resolvers[name] = self._new_resolver()
                return await self._query_family(name, family)
            if code in _NOT_FOUND_CODES:
                if code != ARES_EBADNAME:  # c-ares rejects a malformed name itself
                    self._answered_at = time.monotonic()
                return DnsResult((), _not_found_error(name), time.monotonic() + _NOT_FOUND_TTL)
            return _failed_result(name, str(error.args[-1]))
        nodes = [node for node in response.nodes if node.family == family][:_MAX_ADDRESSES]
        if not nodes:
            return DnsResult((), _not_found_error(name), time.monotonic() + _NOT_FOUND_TTL)
        if any(node.ttl for node in nodes):  # a name in /etc/hosts has none
            self._answered_at = time.monotonic()
        ttl = min(max(_MIN_TTL, min(node.ttl for node in nodes)), _MAX_TTL)
        return DnsResult(tuple(node.addr[0].decode("ascii") for node in nodes), None, time.monotonic() + ttl)


def _not_found_error(name: str) -> socket.gaierror:
    return socket.gaierror(socket.EAI_NONAME, f"DNS has no address of {name[:_MAX_NAME_LENGTH]}")


def _failed_result(name: str, cause: str) -> DnsResult:
    cause = probe_socket_error() or cause  # c-ares reports a failed socket creation as an unreachable server
    error = socket.gaierror(socket.EAI_AGAIN, f"cannot resolve {name}: {cause}")
    return DnsResult((), error, time.monotonic() + _UNANSWERED_TTL)


def _copy_error(error: socket.gaierror) -> socket.gaierror:
    """Return a copy of the error: raising the same one repeatedly would keep every traceback."""
    return type(error)(*error.args)


def _validate_server(server: str) -> None:
    """Raise ConfigurationError unless ``server`` is an address, ``address:port`` or ``[address]:port``."""
    address, _, port = server.rpartition(":") if server.count(":") == 1 or "]:" in server else (server, "", "53")
    with suppress(ValueError):
        ip_address(address.strip("[]"))
        if 0 < int(port) < 1 << 16:
            return
    raise ConfigurationError(f"http.dns.servers holds {server!r}: write addresses, with :PORT if it is not 53")


def has_ipv6() -> bool:
    """Return whether this machine has a route to the IPv6 internet; sends nothing."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("2001:4860:4860::8888", 53))  # connecting a datagram socket only reads the routing table
    except OSError:
        return False
    return True
