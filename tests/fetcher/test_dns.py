"""DNS lookups against a server that is slow, lossy, wrong or hostile."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.protocols.dns import QUERIES_PER_RESET, DnsCache
from nutch2py.url.host_resolver import HostsFile
from tests.site.name_server import NameServer, name_server

T = TypeVar("T")


@pytest.fixture(scope="module")
def server() -> Iterator[NameServer]:
    with name_server() as served:
        yield served


def ask(server: NameServer, use: Callable[[DnsCache], Awaitable[T]], seconds: float = 20.0) -> tuple[T, DnsCache]:
    """Return the result of ``use`` on a DNS cache with this server, and the cache."""

    async def main() -> tuple[T, DnsCache]:
        names = DnsCache(HostsFile({}), (server.address,), seconds)
        try:
            return await use(names), names
        finally:
            await names.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "name",
    [
        "plain.test", "slow-300.test", "lost-2.test", "cut.test", "liar.test", "broken-2.test", "alias-8.test",
        "quiet6.test", "brief.test", "UPPER.test", "xn--bcher-kva.test", "under_score.test", "dot.at.end.test.",
    ],
)  # fmt: skip
def test_lookup_returns_address(server: NameServer, name: str) -> None:
    found, names = ask(server, lambda names: names.resolve(name))
    assert found == ("127.0.0.1",)
    assert (names.stats.lookups, names.stats.unknown, names.stats.unanswered) == (1, 0, 0)


def test_lookup_failing_server_is_retried_until_answer(server: NameServer) -> None:
    """Twenty quick failures in a row delay a name by a few seconds but lose no pages."""
    found, names = ask(server, lambda names: names.resolve("broken-20.again.test"))
    assert found == ("127.0.0.1",)
    assert (names.stats.retried, names.stats.unanswered) == (1, 0)


def test_lookup_restarted_server_loses_no_name() -> None:
    """No server listens at first, which c-ares reports at once: each name waits and is retried."""
    port = _free_port()

    async def main() -> tuple[list[tuple[str, ...]], DnsCache]:
        names = DnsCache(HostsFile({}), (f"127.0.0.1:{port}",))
        try:
            found = asyncio.gather(*(names.resolve(f"n{number}.test") for number in range(50)))
            while names.stats.retried < 50:
                await asyncio.sleep(0.01)
            assert not found.done()
            with name_server(port=port):
                return await found, names
        finally:
            await names.close()

    found, names = asyncio.run(main())
    assert found == [("127.0.0.1",)] * 50
    assert names.stats.unanswered == 0


def test_lookup_lost_packets_are_retried(server: NameServer) -> None:
    """Of a hundred names on a line that loses three of four packets, this happens to two."""

    async def warm(names: DnsCache) -> tuple[str, ...]:
        await names.resolve("plain.warm.test")
        return await names.resolve("lost-14.test")

    found, names = ask(server, warm)
    assert found == ("127.0.0.1",)
    assert names.stats.unanswered == 0


def test_malformed_responses_affect_no_other_name(server: NameServer) -> None:
    """c-ares fails all queries on the same socket: a slow name among them would never resolve."""

    async def crowd(names: DnsCache) -> list[tuple[str, ...] | BaseException]:
        kinds = ("garbage", "slow-1000", "plain")
        hosts = [f"{kind}.n{number}.crowd.test" for number in range(12) for kind in kinds]
        return await asyncio.gather(*map(names.resolve, hosts), return_exceptions=True)

    found, _ = ask(server, crowd, seconds=5.0)
    assert [*found[1::3], *found[2::3]] == [("127.0.0.1",)] * 24


def test_unreachable_addresses_do_not_replace_unanswered_ones(server: NameServer) -> None:
    async def without_ipv6(names: DnsCache) -> tuple[str, ...]:
        names.has_ipv6 = False
        return await names.resolve("v6first-8.test")

    assert ask(server, without_ipv6)[0] == ("127.0.0.1",)


def test_ipv6_only_result_is_retried_soon_without_ipv4_answer(server: NameServer) -> None:
    async def with_ipv6(names: DnsCache) -> float:
        names.has_ipv6 = True
        assert await names.resolve("v6first-8.soon.test") == ("2001:db8::",)
        return names.results["v6first-8.soon.test"].expires_at - time.monotonic()

    assert 0 < ask(server, with_ipv6)[0] <= 10


def test_c_ares_cache_is_bounded(server: NameServer) -> None:
    """c-ares keeps whole responses of up to 64 KiB; an old name is queried again."""

    async def after_others(names: DnsCache) -> int:
        await names.resolve("kept.test")
        for number in range(QUERIES_PER_RESET):
            await names.resolve(f"n{number}.kept.test")
        names.results.clear()
        await names.resolve("kept.test")
        return server.asked["kept.test", 1]

    assert ask(server, after_others)[0] == 2


def test_truncated_response_is_retried_by_tcp(server: NameServer) -> None:
    ask(server, lambda names: names.resolve("cut.tcp.test"))
    assert server.by_tcp["cut.tcp.test"] > 0


def test_ipv6_only_host_is_found(server: NameServer) -> None:
    found, _ = ask(server, lambda names: names.resolve("only6.test"))
    assert found == ("::1",)


def test_ipv4_precedes_reachable_ipv6(server: NameServer) -> None:
    async def both(names: DnsCache) -> tuple[str, ...]:
        names.has_ipv6 = True
        return await names.resolve("both.test")

    assert ask(server, both)[0] == ("127.0.0.1", "::1")


def test_number_of_addresses_is_limited(server: NameServer) -> None:
    assert len(ask(server, lambda names: names.resolve("many.test"))[0]) == 8


@pytest.mark.parametrize("name", ["none.test", "empty.test", "a" * 64 + ".test", "a." * 200 + "test", "two words.test"])
def test_nonexistent_name_is_reported(server: NameServer, name: str) -> None:
    async def twice(names: DnsCache) -> list[int | None]:
        numbers = []
        for _ in range(2):
            with pytest.raises(socket.gaierror, match="DNS has no address") as caught:
                await names.resolve(name)
            numbers.append(caught.value.errno)
        return numbers

    before = server.names()[name]
    numbers, names = ask(server, twice)
    assert numbers == [socket.EAI_NONAME] * 2
    assert server.names()[name] - before <= 4  # A and AAAA; the second time it is remembered
    assert names.stats.retried == 0


@pytest.mark.parametrize("name", ["broken.test", "silent.test", "garbage.test", "loop.test"])
def test_unanswered_name_is_retried_later(server: NameServer, name: str) -> None:
    async def once(names: DnsCache) -> int | None:
        with pytest.raises(socket.gaierror) as caught:
            await names.resolve(name)
        return caught.value.errno

    error, names = ask(server, once, seconds=1.0)
    if name == "loop.test":  # a loop is an answer: there is no address
        assert error in (socket.EAI_NONAME, socket.EAI_AGAIN)
    else:
        assert error == socket.EAI_AGAIN
        assert (names.stats.retried, names.stats.unanswered) == (1, 1)


def test_concurrent_lookups_of_name_share_request(server: NameServer) -> None:
    async def crowd(names: DnsCache) -> set[tuple[str, ...]]:
        return set(await asyncio.gather(*(names.resolve("slow-200.crowd.test") for _ in range(500))))

    found, names = ask(server, crowd)
    assert found == {("127.0.0.1",)}
    assert names.stats.lookups == 1
    assert server.names()["slow-200.crowd.test"] <= 2


def test_cancelled_lookup_does_not_cancel_others(server: NameServer) -> None:
    async def two(names: DnsCache) -> tuple[str, ...]:
        gone = asyncio.ensure_future(names.resolve("slow-300.two.test"))
        stays = asyncio.ensure_future(names.resolve("slow-300.two.test"))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert ask(server, two)[0] == ("127.0.0.1",)


def test_responses_are_cached_for_ttl(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def over_time(names: DnsCache) -> list[int]:
        counts = []
        for shift in (0.0, 4.0, 6.0, 3500.0, 7300.0):
            moment = start + shift
            monkeypatch.setattr("nutch2py.fetcher.protocols.dns.time.monotonic", lambda moment=moment: moment)
            await asyncio.gather(names.resolve("brief.time.test"), names.resolve("hour.time.test"))
            counts.append(names.stats.lookups)
        return counts

    start = time.monotonic()
    assert ask(server, over_time)[0] == [2, 2, 3, 4, 6]


def test_cache_is_bounded_and_evicts_oldest(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nutch2py.fetcher.protocols.dns.MAX_CACHED_NAMES", 3)

    async def five(names: DnsCache) -> list[str]:
        for number in range(5):
            await names.resolve(f"n{number}.bound.test")
        return [*names.results]

    assert ask(server, five)[0] == [f"n{number}.bound.test" for number in (2, 3, 4)]


def test_many_names_with_packet_loss_resolve(server: NameServer) -> None:
    """Two hundred concurrent lookups find the same names as a sequential client."""

    async def all_of_them(names: DnsCache) -> int:
        gate = asyncio.Semaphore(200)

        async def one(number: int) -> bool:
            async with gate:
                kind = "lossy" if number % 50 == 0 else "plain"
                return bool(await names.resolve(f"{kind}.n{number}.test"))

        return sum(await asyncio.gather(*map(one, range(2_000))))

    found, names = ask(server, all_of_them)
    assert found == 2_000
    assert names.stats.lookups == 2_000


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "localhost"])
def test_ip_address_is_not_looked_up(server: NameServer, host: str) -> None:
    found, names = ask(server, lambda names: names.resolve(host))
    assert (found, names.stats.lookups) == ((), 0)


def test_crawl_hosts_file_precedes_dns() -> None:
    names = DnsCache(HostsFile({"named.test": ["127.0.0.9", "::1"]}))
    assert asyncio.run(names.resolve("Named.test.")) == ("127.0.0.9", "::1")


def test_etc_hosts_is_read() -> None:
    lines = Path("/etc/hosts").read_text(encoding="utf-8").splitlines()
    entries = [words for line in lines if len(words := line.partition("#")[0].split()) > 1]
    name = next((words[1] for words in entries if words[1] not in ("localhost", "ip6-localhost")), None)
    if name is None or address_like(name):
        pytest.skip("there is no name in /etc/hosts")

    async def main() -> tuple[str, ...]:
        names = DnsCache(HostsFile({}), ("127.0.0.1:1",))
        try:
            return await names.resolve(name)
        finally:
            await names.close()

    assert set(asyncio.run(main())) & {words[0] for words in entries if name in words}


def _free_port() -> int:
    """Return a port outside the ephemeral range: a socket bound to it would receive its own queries."""
    for port in range(20_053, 30_000):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, suppress(OSError):
            tcp.bind(("127.0.0.1", port))
            udp.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def address_like(name: str) -> bool:
    return name.replace(".", "").isdigit()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("http.dns.servers", "ns.example.org"), ("http.dns.servers", "127.0.0.1:70000"),
        ("http.dns.servers", "1.2.3:53"), ("http.dns.servers", "[::1]:x"), ("http.dns.resolver", "bind"),
        ("http.dns.timeout", "0"),
    ],
)  # fmt: skip
def test_malformed_properties_are_rejected(name: str, value: str) -> None:
    conf = Configuration({name: value})
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        DnsCache.from_conf(conf)


@pytest.mark.parametrize("servers", ["", "127.0.0.1", "127.0.0.1:53,[::1]:5353", "::1", "fe80::1"])
def test_servers_are_parsed_with_and_without_port(servers: str) -> None:
    DnsCache.from_conf(Configuration({"http.dns.servers": servers}))
