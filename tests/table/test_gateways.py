"""Which gateway is taken, and how a connection is watched, without HBase."""

from __future__ import annotations

import socket
from itertools import pairwise

import pytest
from thriftpy2.transport import TTransportException

from nutch2py.conf import Configuration
from nutch2py.table.hbase import gateways
from nutch2py.table.hbase.connection import make_socket
from nutch2py.table.hbase.gateways import Gateways, is_here
from nutch2py.table.hbase.hbase_settings import Address, Settings
from nutch2py.table.hbase.regions import Span, region_hosts

AFAR = (Address("198.51.100.1", 9090), Address("198.51.100.2", 9090))
"""Addresses for documentation, which no machine has."""
NEAR = (Address("127.0.0.1", 9090), Address("127.0.0.1", 9091))


class FakeLink:
    """A connection that the test's list of dead gateways refuses."""

    dead: frozenset[Address] = frozenset()
    fresh = True

    def __init__(self, address: Address, settings: Settings) -> None:
        self.address, self.used = address, 0.0
        if address in self.dead:
            raise TTransportException(type=TTransportException.NOT_OPEN, message="gone")


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> type[FakeLink]:
    kind = type("Link", (FakeLink,), {})
    monkeypatch.setattr(gateways, "Link", kind)
    return kind


def opened(*addresses: Address) -> Gateways:
    return Gateways(addresses, Settings.of(Configuration.load()), "t_webpage", "hbase://test")


def test_what_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)  # no name is looked up
    monkeypatch.setattr(socket, "gethostname", lambda: "node1.test")
    for host in ("127.0.0.1", "localhost", "node1.test", "node1", "node1.test.example"):
        assert is_here(host), host
    for host in ("198.51.100.1", "2001:db8::1", "node2.test", "node11", "node1.example"):
        assert not is_here(host), host


def test_gateways_of_this_machine_are_used_in_turn(links: type[FakeLink]) -> None:
    both = opened(*AFAR, *NEAR)
    found = [both.borrow().address for _ in range(6)]
    assert set(found) == set(NEAR)
    assert all(one != other for one, other in pairwise(found))


def test_without_one_here_all_are(links: type[FakeLink]) -> None:
    all_of_them = opened(*AFAR)
    assert {all_of_them.borrow().address for _ in range(4)} == set(AFAR)


def test_another_is_used_while_that_here_rests(links: type[FakeLink]) -> None:
    both = opened(AFAR[0], NEAR[0])
    links.dead = frozenset(NEAR)
    with pytest.raises(TTransportException):
        both.borrow()
    assert [both.borrow().address for _ in range(3)] == [AFAR[0]] * 3


def test_a_connection_is_watched_by_the_system() -> None:
    """A gateway may take minutes to answer, and a machine without power says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        made = make_socket(address, Settings.of(Configuration.load()))
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


def test_a_range_lies_where_most_of_its_regions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    regions = [
        Region(b"", b"b", b"one"), Region(b"b", b"d", b"two"), Region(b"d", b"f", b"two"), Region(b"f", b"", None),
    ]  # fmt: skip
    known = opened(*AFAR)
    monkeypatch.setattr(known, "call", lambda action: regions[::-1])
    spans = [Span(b"", b"b"), Span(b"", b"f"), Span(b"a", b"c"), Span(b"c", b"d"), Span(b"f", b""), Span(b"d", b"")]
    assert region_hosts(known, b"t", spans) == ["one", "two", "one", "two", "", "two"]
