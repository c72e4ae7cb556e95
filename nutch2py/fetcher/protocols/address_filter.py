"""The address filter: addresses that may be fetched from (``http.filter.ipaddress.include`` and ``.exclude``).

The filter is checked when a socket is opened, with the address about to be used, so that neither redirects nor DNS
rebinding bypass it. IPv4 addresses embedded in IPv6 addresses (:func:`expand_address`) are checked as well, since
routers and translators deliver packets to them. Where a proxy opens the connection, only the host name is known:
``is_host_allowed`` checks names that are an address in another notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.url.idn import host_to_ascii

IPNetwork = IPv4Network | IPv6Network
IPAddress = IPv4Address | IPv6Address

# the terms of java.net.InetAddress; "this host" (0.0.0.0) reaches the loopback on most systems
_NAMED_RANGES: dict[str, tuple[str, ...]] = {
    "loopback": ("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128"),
    "localhost": ("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128"),
    # and the ranges that IANA's special-purpose registries exclude from the open web: shared (RFC 6598), unique local
    # (RFC 4193), benchmarks (RFC 2544, 5180), protocol assignments (RFC 6890), documentation (RFC 5737, 3849, 9637),
    # reserved and broadcast (RFC 1112), local translation (RFC 8215), discard and dummy (RFC 6666, 9780), segment
    # routing (RFC 9602), ORCHID (RFC 4843); multicast groups (RFC 5771, 4291) have no server
    "sitelocal": (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "192.0.0.0/24",
        "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "fec0::/10", "fc00::/7", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001:2::/48", "2001:10::/28",
        "2001:db8::/32", "3fff::/20", "5f00::/16", "ff00::/8",
    ),
    "linklocal": ("169.254.0.0/16", "fe80::/10"),
}  # fmt: skip

# prefix, and the right shifts that yield the embedded IPv4 address
_EMBEDDED_IPV4: tuple[tuple[IPv6Network, tuple[int, ...]], ...] = (
    (IPv6Network("::ffff:0:0/96"), (0,)),  # IPv4-mapped, RFC 4291
    (IPv6Network("::/96"), (0,)),  # IPv4-compatible, RFC 4291
    (IPv6Network("::ffff:0:0:0/96"), (0,)),  # IPv4-translated, RFC 2765
    (IPv6Network("64:ff9b::/96"), (0,)),  # NAT64, RFC 6052
    (IPv6Network("64:ff9b:1::/48"), (0, 24)),  # local NAT64, RFC 8215; as /96 and as /64
    (IPv6Network("2002::/16"), (80,)),  # 6to4, RFC 3056
    (IPv6Network("2001::/32"), (64,)),  # Teredo server, RFC 4380
)
_LOW_32, _IPV6_BITS = 0xFFFFFFFF, 128
_TEREDO, _LOCAL_NAT64 = IPv6Network("2001::/32"), IPv6Network("64:ff9b:1::/48")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})  # upper half of the interface identifier, RFC 5214
_WITHOUT_IPV4 = frozenset({IPv6Address("::"), IPv6Address("::1")})

_NUMBER_PATTERN = re.compile(r"0x([0-9a-f]*)|(?:0(?=[0-9]))*+([0-9]+)", re.IGNORECASE)
_MAX_DIGITS = 11  # 32 bits in octal


def _parse_networks(conf: Configuration, name: str) -> list[IPNetwork]:
    networks: list[IPNetwork] = []
    for rule in conf.get_strings(name):
        for text in _NAMED_RANGES.get(rule.lower(), (rule,)):
            try:
                networks.append(ip_network(text, strict=False))
            except ValueError:
                raise ConfigurationError(
                    f"property {name} holds {rule!r}: write loopback, sitelocal, linklocal, an address or ADDRESS/BITS"
                ) from None
    return networks


def expand_address(text: str) -> list[IPAddress]:
    """Return the addresses that an address may reach: those embedded in it, then itself.

    Brackets and a zone are ignored.

    Raises:
        ValueError: ``text`` is no address.
    """
    address = ip_address(text.strip("[]").partition("%")[0])
    if isinstance(address, IPv4Address) or address in _WITHOUT_IPV4:
        return [address]
    return [*_iter_embedded_ipv4(address), address]


def _iter_embedded_ipv4(address: IPv6Address) -> Iterator[IPv4Address]:
    bits = int(address)
    if address in _TEREDO:  # the obfuscated client address is the one that is reached
        yield IPv4Address(~bits & _LOW_32)
    for prefix, shifts in _EMBEDDED_IPV4:
        if address in prefix:
            yield from (IPv4Address(bits >> shift & _LOW_32) for shift in shifts)
    if address in _LOCAL_NAT64:  # as /48 and as /56: bits 64 to 71 are not part of the address, RFC 6052 2.2
        joined = (bits >> 64 << 56 | bits & (1 << 56) - 1) & (1 << 72) - 1
        yield from (IPv4Address(joined >> shift & _LOW_32) for shift in (40, 32))
    if bits >> 32 & _LOW_32 in _ISATAP:
        yield IPv4Address(bits & _LOW_32)


def parse_host_address(host: str) -> str | None:
    """Return the address that a URL's host denotes in any notation of libcurl and ``getaddrinfo``, else None.

    Examples: ``%31%32%37.0.0.1``, ``0x7f.1``, ``2130706433``, ``127.1``, full-width digits, a final dot, ``localhost``.
    """
    name = unquote(host)
    try:
        return str(ip_address(name.strip("[]").partition("%")[0]))
    except ValueError:
        pass
    try:
        name = host_to_ascii(name)
    except ValueError:
        name = name.lower()
    name = name.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761
        return "127.0.0.1"
    return _parse_ipv4(name)


def _parse_ipv4(name: str) -> str | None:
    """Parse an IPv4 address as ``inet_aton`` does: one to four numbers, of which the last fills the remaining bits."""
    parts = name.split(".", 4)
    numbers = [_parse_number(part) for part in parts]
    *upper, last = numbers
    if len(parts) > 4 or last is None or last >= 1 << 8 * (5 - len(parts)):
        return None
    value = last
    for index, number in enumerate(upper):
        if number is None or number > 255:
            return None
        value |= number << 8 * (3 - index)
    return str(IPv4Address(value))


def _parse_number(text: str) -> int | None:
    match = _NUMBER_PATTERN.fullmatch(text)
    if match is None:
        return None
    digits, base = (match[1].lstrip("0"), 16) if match[1] is not None else (match[2], 8 if text[0] == "0" else 10)
    if len(digits) > _MAX_DIGITS or (base == 8 and not set(digits) <= set("01234567")):
        return None
    return int(digits or "0", base)


INCLUDE_PROPERTY, EXCLUDE_PROPERTY = "http.filter.ipaddress.include", "http.filter.ipaddress.exclude"
_EXCLUDED_PATTERN = re.compile(r"address excluded by http\.filter\.ipaddress(?:\.include|\.exclude)?: (.*)", re.DOTALL)


class AddressExcludedError(OSError):
    """A connection to an address that the filter excludes; its text is stored in the row's protocol status.

    ``property_name``: the property that decides.
    """

    def __init__(self, address: str, property_name: str = EXCLUDE_PROPERTY) -> None:
        super().__init__(f"address excluded by {property_name}: {address}")


def parse_excluded_address(text: str) -> str | None:
    """Return the excluded address from the text of a protocol status, or None for any other text.

    Earlier versions wrote the common part of the names of both properties.
    """
    match = _EXCLUDED_PATTERN.fullmatch(text)
    return None if match is None else match[1]


class AddressFilter:
    """Decides whether an address may be connected to; false if there are no rules."""

    def __init__(self, include: list[IPNetwork], exclude: list[IPNetwork]) -> None:
        self._include, self._exclude = include, exclude
        self.is_allowed = lru_cache(maxsize=65_536)(self._is_allowed)

    @classmethod
    def from_conf(cls, conf: Configuration) -> AddressFilter:
        """Read both properties; raise ConfigurationError if a rule is malformed."""
        return cls(
            _parse_networks(conf, INCLUDE_PROPERTY),
            _parse_networks(conf, EXCLUDE_PROPERTY),
        )

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def exclusion_error(self, host: str) -> AddressExcludedError:
        """Return the error for an address that is not allowed, in any notation, with the property that decides."""
        try:
            addresses = expand_address(parse_host_address(host) or host)
        except ValueError:
            return AddressExcludedError(host)
        is_excluded = any(address in network for address in addresses for network in self._exclude)
        return AddressExcludedError(host, EXCLUDE_PROPERTY if is_excluded else INCLUDE_PROPERTY)

    def is_host_allowed(self, host: str) -> bool:
        """Return whether a host may be requested from a proxy: not if it is an excluded address in any notation."""
        address = parse_host_address(host)
        return address is None or self.is_allowed(address)

    def _is_allowed(self, text: str) -> bool:
        addresses = expand_address(text)
        if self._include and not any(addresses[0] in network for network in self._include):
            return False
        return not any(address in network for address in addresses for network in self._exclude)
