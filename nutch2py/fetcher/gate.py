"""The address gate: which addresses may be fetched from (``http.filter.ipaddress.include`` and ``.exclude``).

The gate is asked at the moment a socket is opened, with the address that is about to be used, so neither a redirect nor
a name that resolves anew can lead around it. An IPv4 address inside an IPv6 one (``::ffff:10.0.0.1``) counts as the
IPv4 address, and so do the one in a 6to4 address (``2002::/16``) and that behind a NAT64 (``64:ff9b::/96``).
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
# what java.net.InetAddress calls so; "this host" (0.0.0.0) reaches the loopback on most systems
_NAMED: dict[str, tuple[str, ...]] = {
    "loopback": ("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128"),
    "localhost": ("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128"),
    # and the addresses since then set apart for the same: shared (RFC 6598), unique local (RFC 4193), benchmarks (RFC
    # 2544), protocol assignments (RFC 6890), reserved and broadcast (RFC 1112), which reach no server of the open web
    "sitelocal": (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "192.0.0.0/24",
        "240.0.0.0/4", "fec0::/10", "fc00::/7",
    ),
    "linklocal": ("169.254.0.0/16", "fe80::/10"),
}  # fmt: skip


def _networks(conf: Configuration, name: str) -> list[Network]:
    found: list[Network] = []
    for rule in conf.get_strings(name):
        for text in _NAMED.get(rule.lower(), (rule,)):
            try:
                found.append(ip_network(text, strict=False))
            except ValueError:
                raise ConfigurationError(
                    f"property {name} holds {rule!r}: write loopback, sitelocal, linklocal, an address or ADDRESS/BITS"
                ) from None
    return found


def plain_address(text: str) -> IPv4Address | IPv6Address:
    """Return the address that is reached: without brackets and zone, and IPv4 where IPv6 only wraps it."""
    address = ip_address(text.strip("[]").partition("%")[0])
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


class AddressExcludedError(OSError):
    """A connection to an address that the gate refuses."""


class AddressGate:
    """Says whether an address may be connected to; truth value: whether there is any rule."""

    def __init__(self, include: list[Network], exclude: list[Network]) -> None:
        self._include, self._exclude = include, exclude
        self.accepts = lru_cache(maxsize=65_536)(self._accepts)

    @classmethod
    def from_conf(cls, conf: Configuration) -> AddressGate:
        """Read both properties; raise ConfigurationError when a rule is malformed."""
        return cls(_networks(conf, "http.filter.ipaddress.include"), _networks(conf, "http.filter.ipaddress.exclude"))

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def _accepts(self, text: str) -> bool:
        address = plain_address(text)
        if self._include and not any(address in network for network in self._include):
            return False
        return not any(address in network for network in self._exclude)
