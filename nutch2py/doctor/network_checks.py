"""Checks of the network: DNS, the hosts of the table against the address filter, and the proxy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, error_result, ok_result, warning_result
from nutch2py.fetcher.protocols.address_filter import AddressFilter, parse_host_address
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.http_settings import ProxySettings
from nutch2py.fetcher.protocols.local_failures import DnsUnavailableError
from nutch2py.records.webpage import WebPage
from nutch2py.table import DataStore, KeyRange, open_store
from nutch2py.url.keys import unreverse_url
from nutch2py.url.url_parts import host_of

_TEST_HOST = "www.iana.org"
_MAX_HOSTS = 50  # of the table
_MAX_NAMED_HOSTS = 3
_LOOKUP_SECONDS, _CONNECT_SECONDS = 3.0, 5.0


def check_dns(conf: Configuration) -> Iterator[CheckResult]:
    """Check that host names can be resolved."""
    if conf.get_trimmed("http.proxy.host"):
        yield ok_result("DNS", "resolved by the proxy (http.proxy.host)")
        return
    dns = DnsCache.from_conf(conf)
    servers = conf.get_trimmed("http.dns.servers") or "the system resolver"
    if not dns.uses_cares:
        yield ok_result("DNS", "resolved by the system (http.dns.resolver)")
        return
    try:
        addresses = asyncio.run(_lookup(dns))
    except OSError as error:
        yield warning_result(
            "DNS", f"{servers} cannot resolve {_TEST_HOST} ({error.strerror}): check the network, and http.dns.servers"
        )
    else:
        yield ok_result("DNS", f"{servers} resolved {_TEST_HOST} to {addresses[0]}")


async def _lookup(dns: DnsCache) -> tuple[str, ...]:
    try:
        return await dns.resolve(_TEST_HOST)
    finally:
        await dns.close()


def check_hosts(conf: Configuration) -> Iterator[CheckResult]:
    """Check that the fetcher may connect to hosts of the table, and that DNS servers answer for them."""
    address_filter, proxy = AddressFilter.from_conf(conf), ProxySettings.from_conf(conf)
    with closing(open_store(conf, WebPage)) as store:
        hosts = _sample_hosts(store) if store.exists() else []
    hosts = [host for host in hosts if proxy is None or proxy.is_bypassed(host)]
    if not hosts:
        return
    denied, unanswered, errors = asyncio.run(_check_addresses(conf, hosts, address_filter))
    if denied:
        names = ", ".join(denied[:_MAX_NAMED_HOSTS]) + (", …" if len(denied) > _MAX_NAMED_HOSTS else "")
        yield warning_result(
            "address filter",
            f"{len(denied)} of {len(hosts)} hosts of the table are excluded: {names}. Their pages are not fetched; "
            f"{errors[0]}. To crawl an intranet, empty http.filter.ipaddress.exclude",
        )
    if unanswered:
        yield warning_result(
            "DNS",
            f"no DNS server answered for {len(unanswered)} of {len(hosts)} hosts of the table, such as "
            f"{unanswered[0]}: check http.dns.servers and the network",
        )


def check_proxy(conf: Configuration) -> Iterator[CheckResult]:
    """Check that the proxy accepts connections."""
    proxy = ProxySettings.from_conf(conf)
    if proxy is None:
        return
    host, port = conf.get_trimmed("http.proxy.host"), conf.get_int("http.proxy.port", 8080)
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError as error:
        yield error_result(
            "proxy",
            f"cannot connect to {host}:{port}: {error.strerror or error}. No page is fetched through it; correct "
            "http.proxy.host and http.proxy.port, or start the proxy",
        )
    else:
        yield ok_result("proxy", f"{host}:{port} accepts connections")


def _sample_hosts(store: DataStore[WebPage]) -> list[str]:
    """Return some hosts of a table. Keys are grouped by host, so one key of each is read."""
    hosts: dict[str, None] = {}
    start = ""
    while len(hosts) < _MAX_HOSTS:
        key = next(iter(store.keys(KeyRange(start))), None)
        if key is None:
            break
        try:
            host = host_of(unreverse_url(key))
        except ValueError:
            host = ""
        if host:
            hosts[host.lower()] = None
        domain, colon, _ = key.partition(":")
        start = f"{domain};" if colon else f"{key}\x00"  # ";" follows ":"
    return [*hosts]


async def _check_addresses(
    conf: Configuration, hosts: list[str], address_filter: AddressFilter
) -> tuple[list[str], list[str], list[str]]:
    """Return the denied hosts, those for which no DNS server answered, and the messages of the filter."""
    conf = conf.copy()
    conf.set("http.dns.timeout", str(min(_LOOKUP_SECONDS, conf.get_float("http.dns.timeout", 20.0))))
    dns = DnsCache.from_conf(conf)
    denied: list[str] = []
    unanswered: list[str] = []
    errors: list[str] = []

    async def check(host: str) -> None:
        try:
            addresses = await dns.resolve(host)
            if not addresses and parse_host_address(host) is None:
                results = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
                addresses = tuple(str(each[4][0]) for each in results)
        except DnsUnavailableError:
            unanswered.append(host)
            return
        except (OSError, ValueError):
            return
        literal = parse_host_address(host)
        known = addresses or ((literal,) if literal else ())
        excluded = [each for each in known if address_filter and not address_filter.is_allowed(each)]
        if known and len(excluded) == len(known):
            denied.append(host)
            errors.append(str(address_filter.exclusion_error(excluded[0])))

    try:
        await asyncio.gather(*map(check, hosts))
    finally:
        await dns.close()
    return sorted(denied), sorted(unanswered), errors
