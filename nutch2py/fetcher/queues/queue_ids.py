"""Queue ids of URLs: host, domain, or address of the host."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.protocols.address_filter import parse_host_address
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.url.host_resolver import HostResolver, HostsFile
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.java_url import parse_url
from nutch2py.url.url_parts import DomainRules

BY_HOST, BY_DOMAIN, BY_IP = "byHost", "byDomain", "byIP"
_MAX_HOST_LENGTH = 255  # characters; RFC 1035
_MAX_CACHED_HOSTS = 65_536  # hosts with a cached address


class QueueIdResolver:
    """Returns the queue id of a URL by ``fetcher.queue.mode``: host, domain or address.

    http and https of a host share a queue, as in Nutch 1, since both are one server. In mode byIP,
    :meth:`resolve_hosts` resolves the hosts in advance. A host keeps its first address, so that DNS rotation does not
    split its queue.
    """

    def __init__(self, conf: Configuration, dns_cache: DnsCache | None = None) -> None:
        self._domain_of = DomainRules.from_conf(conf).domain_of
        self.mode = conf.get_trimmed("fetcher.queue.mode", BY_HOST)
        if self.mode not in (BY_HOST, BY_DOMAIN, BY_IP):
            raise ConfigurationError(
                f"property fetcher.queue.mode is {self.mode!r}: write {BY_HOST}, {BY_DOMAIN} or {BY_IP}"
            )
        self._dns_cache = dns_cache
        self._resolver = HostResolver(HostsFile.from_conf(conf)) if self.mode == BY_IP else None
        self._host_addresses: OrderedDict[str, str | None] = OrderedDict()

    async def resolve_hosts(self, urls: Iterable[str]) -> None:
        """Resolve the hosts of URLs concurrently if their queue ids need it; never raises."""
        if self._resolver is None:
            return
        hosts = set()
        for url in urls:
            try:
                host = parse_url(url).host.strip("[]").lower()
            except ValueError:
                continue
            if 0 < len(host) <= _MAX_HOST_LENGTH and host not in self._host_addresses:
                hosts.add(host)
        await asyncio.gather(*(self._resolve_host(self._resolver, host) for host in hosts))
        while len(self._host_addresses) > _MAX_CACHED_HOSTS:
            self._host_addresses.popitem(last=False)

    async def _resolve_host(self, resolver: HostResolver, host: str) -> None:
        try:
            ascii_host = host if host.isascii() else host_to_ascii(host)
            addresses = await self._dns_cache.resolve(ascii_host) if self._dns_cache is not None else ()
        except (OSError, ValueError):
            self._host_addresses[host] = None
            return
        if addresses:
            self._host_addresses[host] = addresses[0]
        else:  # an address literal, or a host that only the system resolver knows
            self._host_addresses[host] = parse_host_address(host) or await asyncio.to_thread(resolver.resolve, host)

    def get_queue_id(self, url: str) -> str:
        """Return the queue id of a URL.

        A host that :meth:`resolve_hosts` has not resolved is resolved by the system, which can block for long.

        Raises:
            ValueError: The URL is malformed.
            LookupError: The host is unknown (byIP).
        """
        parts = parse_url(url)
        host = parts.host
        if len(host) > _MAX_HOST_LENGTH:
            raise ValueError(f"a host of {len(host)} characters")
        if self.mode == BY_DOMAIN:
            host = self._domain_of(url) or url
        elif self._resolver is not None:
            name = host.strip("[]").lower()
            address = self._host_addresses[name] if name in self._host_addresses else self._resolver.resolve(host)
            if address is None:
                raise LookupError(f"unknown host {host}")
            host = address
        return host.lower() or f"{parts.protocol}://"
