"""Which gateway is taken, and how a connection is watched, without HBase."""

from __future__ import annotations

import socket
from itertools import pairwise

import pytest
from thriftpy2.transport import TTransportException

from nutch2py.conf.configuration import Configuration
from nutch2py.table.hbase.regions import KeySpan, region_hosts
from nutch2py.table.hbase.thrift_client import thrift_gateway_pool
from nutch2py.table.hbase.thrift_client.gateway_connection import make_socket
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseSettings
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool, is_local_host

AFAR = (GatewayAddress("198.51.100.1", 9090), GatewayAddress("198.51.100.2", 9090))
"""Addresses for documentation, which no machine has."""
NEAR = (GatewayAddress("127.0.0.1", 9090), GatewayAddress("127.0.0.1", 9091))


class FakeLink:
    """A connection that fails if its gateway is in the test's list of dead ones."""

    dead: frozenset[GatewayAddress] = frozenset()
    fresh = True

    def __init__(self, address: GatewayAddress, settings: HBaseSettings) -> None:
        self.address, self.used = address, 0.0
        if address in self.dead:
            raise TTransportException(type=TTransportException.NOT_OPEN, message="gone")


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> type[FakeLink]:
    kind = type("Link", (FakeLink,), {})
    monkeypatch.setattr(thrift_gateway_pool, "GatewayConnection", kind)
    return kind


def opened(*addresses: GatewayAddress) -> ThriftGatewayPool:
    return ThriftGatewayPool(addresses, HBaseSettings.from_conf(Configuration.load()), "t_webpage", "hbase://test")


def test_local_addresses_are_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)  # no name is looked up
    monkeypatch.setattr(socket, "gethostname", lambda: "node1.test")
    for host in ("127.0.0.1", "localhost", "node1.test", "node1", "node1.test.example"):
        assert is_local_host(host), host
    for host in ("198.51.100.1", "2001:db8::1", "node2.test", "node11", "node1.example"):
        assert not is_local_host(host), host


def test_local_gateways_are_used_round_robin(links: type[FakeLink]) -> None:
    both = opened(*AFAR, *NEAR)
    found = [both.borrow().address for _ in range(6)]
    assert set(found) == set(NEAR)
    assert all(one != other for one, other in pairwise(found))


def test_without_local_gateway_all_are_used(links: type[FakeLink]) -> None:
    all_of_them = opened(*AFAR)
    assert {all_of_them.borrow().address for _ in range(4)} == set(AFAR)


def test_remote_gateway_is_used_while_local_rests(links: type[FakeLink]) -> None:
    both = opened(AFAR[0], NEAR[0])
    links.dead = frozenset(NEAR)
    with pytest.raises(TTransportException):
        both.borrow()
    assert [both.borrow().address for _ in range(3)] == [AFAR[0]] * 3


def test_connection_has_tcp_keepalive() -> None:
    """A gateway may take minutes to answer, and a machine without power says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = GatewayAddress("127.0.0.1", server.getsockname()[1])
        made = make_socket(address, HBaseSettings.from_conf(Configuration.load()))
        made.open()
        try:
            options = [getattr(socket, f"TCP_{name}") for name in ("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")]
            assert [made.sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [20, 10, 3, 60_000]
            assert made.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        finally:
            made.close()


class Region:
    def __init__(self, start: bytes, end: bytes, host: bytes | None) -> None:
        self.startKey, self.endKey, self.serverName = start, end, host


def test_range_location_is_host_of_most_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    regions = [
        Region(b"", b"b", b"one"), Region(b"b", b"d", b"two"), Region(b"d", b"f", b"two"), Region(b"f", b"", None),
    ]  # fmt: skip
    known = opened(*AFAR)
    monkeypatch.setattr(known, "call", lambda action: regions[::-1])
    spans = [
        KeySpan(b"", b"b"),
        KeySpan(b"", b"f"),
        KeySpan(b"a", b"c"),
        KeySpan(b"c", b"d"),
        KeySpan(b"f", b""),
        KeySpan(b"d", b""),
    ]
    assert region_hosts(known, b"t", spans) == ["one", "two", "one", "two", "", "two"]
