"""Names and their addresses, asked of a DNS server that is slow, lossy, wrong or lies."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.names import _ASKS_KEPT, Names
from nutch2py.url.resolve import HostsFile
from tests.site.name_server import NameServer, name_server

T = TypeVar("T")


@pytest.fixture(scope="module")
def server() -> Iterator[NameServer]:
    with name_server() as served:
        yield served


def ask(server: NameServer, use: Callable[[Names], Awaitable[T]], seconds: float = 20.0) -> tuple[T, Names]:
    """Return what ``use`` makes of names that this server tells of, and those."""

    async def main() -> tuple[T, Names]:
        names = Names(HostsFile({}), (server.address,), seconds)
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
def test_an_address_is_found(server: NameServer, name: str) -> None:
    found, names = ask(server, lambda names: names.lookup(name))
    assert found == ("127.0.0.1",)
    assert (names.counts.names, names.counts.unknown, names.counts.unanswered) == (1, 0, 0)


def test_a_server_that_fails_for_seconds_is_asked_until_it_answers(server: NameServer) -> None:
    """Twenty failures in a row: as quick as they come, they cost the name a few seconds and not its pages."""
    found, names = ask(server, lambda names: names.lookup("broken-20.again.test"))
    assert found == ("127.0.0.1",)
    assert (names.counts.again, names.counts.unanswered) == (1, 0)


def test_a_server_that_begins_anew_costs_no_name() -> None:
    """Nobody listens for three seconds, which c-ares is told at once: each name waits, and is asked for again."""
    port = _free_port()

    async def main() -> tuple[list[tuple[str, ...]], Names]:
        names = Names(HostsFile({}), (f"127.0.0.1:{port}",))
        try:
            found = asyncio.gather(*(names.lookup(f"n{number}.test") for number in range(50)))
            await asyncio.sleep(3)
            assert not found.done()
            with name_server(port=port):
                return await found, names
        finally:
            await names.close()

    found, names = asyncio.run(main())
    assert found == [("127.0.0.1",)] * 50
    assert names.counts.unanswered == 0


def test_a_name_is_found_after_fourteen_packets_are_lost(server: NameServer) -> None:
    """Of a hundred names on a line that loses three packets of four this happens to two."""

    async def warm(names: Names) -> tuple[str, ...]:
        await names.lookup("plain.warm.test")
        return await names.lookup("lost-14.test")

    found, names = ask(server, warm)
    assert found == ("127.0.0.1",)
    assert names.counts.unanswered == 0


def test_malformed_answers_cost_no_other_name(server: NameServer) -> None:
    """C-ares fails all that was asked with the same socket: a slow name among them would never be found."""

    async def crowd(names: Names) -> list[tuple[str, ...] | BaseException]:
        kinds = ("garbage", "slow-1000", "plain")
        hosts = [f"{kind}.n{number}.crowd.test" for number in range(12) for kind in kinds]
        return await asyncio.gather(*map(names.lookup, hosts), return_exceptions=True)

    found, _ = ask(server, crowd, seconds=5.0)
    assert [*found[1::3], *found[2::3]] == [("127.0.0.1",)] * 24


def test_addresses_that_cannot_be_reached_do_not_stand_for_those_that_dns_did_not_say(server: NameServer) -> None:
    async def without_ipv6(names: Names) -> tuple[str, ...]:
        names._has_ipv6 = False
        return await names.lookup("v6first-8.test")

    assert ask(server, without_ipv6)[0] == ("127.0.0.1",)


def test_ipv6_alone_is_asked_again_soon_where_dns_did_not_say_ipv4(server: NameServer) -> None:
    async def with_ipv6(names: Names) -> float:
        names._has_ipv6 = True
        assert await names.lookup("v6first-8.soon.test") == ("2001:db8::",)
        return names._known["v6first-8.soon.test"].until - time.monotonic()

    assert 0 < ask(server, with_ipv6)[0] <= 10


def test_what_c_ares_remembers_is_bounded(server: NameServer) -> None:
    """It keeps whole answers, which a hostile server makes of 64 KiB; a name of long ago is asked of DNS anew."""

    async def after_others(names: Names) -> int:
        await names.lookup("kept.test")
        for number in range(_ASKS_KEPT):
            await names.lookup(f"n{number}.kept.test")
        names._known.clear()
        await names.lookup("kept.test")
        return server.asked["kept.test", 1]

    assert ask(server, after_others)[0] == 2


def test_an_answer_that_is_cut_is_asked_for_by_tcp(server: NameServer) -> None:
    ask(server, lambda names: names.lookup("cut.tcp.test"))
    assert server.by_tcp["cut.tcp.test"] > 0


def test_ipv6_alone_is_found_where_there_is_no_ipv4(server: NameServer) -> None:
    found, _ = ask(server, lambda names: names.lookup("only6.test"))
    assert found == ("::1",)


def test_ipv4_comes_first_and_ipv6_when_it_can_be_reached(server: NameServer) -> None:
    async def both(names: Names) -> tuple[str, ...]:
        names._has_ipv6 = True
        return await names.lookup("both.test")

    assert ask(server, both)[0] == ("127.0.0.1", "::1")


def test_no_more_addresses_are_kept_than_are_of_use(server: NameServer) -> None:
    assert len(ask(server, lambda names: names.lookup("many.test"))[0]) == 8


@pytest.mark.parametrize("name", ["none.test", "empty.test", "a" * 64 + ".test", "a." * 200 + "test", "two words.test"])
def test_a_name_that_is_not_there_is_said_to_be_so(server: NameServer, name: str) -> None:
    async def twice(names: Names) -> list[int | None]:
        numbers = []
        for _ in range(2):
            with pytest.raises(socket.gaierror, match="DNS knows no address") as caught:
                await names.lookup(name)
            numbers.append(caught.value.errno)
        return numbers

    before = server.names()[name]
    numbers, names = ask(server, twice)
    assert numbers == [socket.EAI_NONAME] * 2
    assert server.names()[name] - before <= 4  # A and AAAA; the second time it is remembered
    assert names.counts.again == 0


@pytest.mark.parametrize("name", ["broken.test", "silent.test", "garbage.test", "loop.test"])
def test_a_name_of_which_nobody_says_where_it_is_is_asked_for_again(server: NameServer, name: str) -> None:
    async def once(names: Names) -> int | None:
        with pytest.raises(socket.gaierror) as caught:
            await names.lookup(name)
        return caught.value.errno

    error, names = ask(server, once, seconds=1.0)
    if name == "loop.test":  # a loop is an answer: there is no address
        assert error in (socket.EAI_NONAME, socket.EAI_AGAIN)
    else:
        assert error == socket.EAI_AGAIN
        assert (names.counts.again, names.counts.unanswered) == (1, 1)


def test_one_lookup_a_name_however_many_ask(server: NameServer) -> None:
    async def crowd(names: Names) -> set[tuple[str, ...]]:
        return set(await asyncio.gather(*(names.lookup("slow-200.crowd.test") for _ in range(500))))

    found, names = ask(server, crowd)
    assert found == {("127.0.0.1",)}
    assert names.counts.names == 1
    assert server.names()["slow-200.crowd.test"] <= 2


def test_who_no_longer_waits_does_not_take_the_answer_from_others(server: NameServer) -> None:
    async def two(names: Names) -> tuple[str, ...]:
        gone = asyncio.ensure_future(names.lookup("slow-300.two.test"))
        stays = asyncio.ensure_future(names.lookup("slow-300.two.test"))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert ask(server, two)[0] == ("127.0.0.1",)


def test_answers_are_remembered_for_their_time(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def over_time(names: Names) -> list[int]:
        counts = []
        for shift in (0.0, 4.0, 6.0, 3500.0, 7300.0):
            moment = start + shift
            monkeypatch.setattr("nutch2py.fetcher.names.time.monotonic", lambda moment=moment: moment)
            await asyncio.gather(names.lookup("brief.time.test"), names.lookup("hour.time.test"))
            counts.append(names.counts.names)
        return counts

    start = time.monotonic()
    assert ask(server, over_time)[0] == [2, 2, 3, 4, 6]


def test_memory_is_bounded_and_the_oldest_goes_first(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nutch2py.fetcher.names._MOST_NAMES", 3)

    async def five(names: Names) -> list[str]:
        for number in range(5):
            await names.lookup(f"n{number}.bound.test")
        return [*names._known]

    assert ask(server, five)[0] == [f"n{number}.bound.test" for number in (2, 3, 4)]


def test_ten_thousand_names_at_once_with_a_third_of_the_packets_lost(server: NameServer) -> None:
    """What a patient client gets, one name after the other, this gets with two hundred at once."""

    async def all_of_them(names: Names) -> int:
        gate = asyncio.Semaphore(200)

        async def one(number: int) -> bool:
            async with gate:
                kind = "lossy" if number % 50 == 0 else "plain"
                return bool(await names.lookup(f"{kind}.n{number}.test"))

        return sum(await asyncio.gather(*map(one, range(10_000))))

    found, names = ask(server, all_of_them)
    assert found == 10_000
    assert names.counts.names == 10_000


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "localhost"])
def test_what_is_an_address_is_not_asked_for(server: NameServer, host: str) -> None:
    found, names = ask(server, lambda names: names.lookup(host))
    assert (found, names.counts.names) == ((), 0)


def test_the_hosts_file_of_the_crawl_comes_first() -> None:
    names = Names(HostsFile({"named.test": ["127.0.0.9", "::1"]}))
    assert asyncio.run(names.lookup("Named.test.")) == ("127.0.0.9", "::1")


def test_etc_hosts_is_read() -> None:
    lines = Path("/etc/hosts").read_text(encoding="utf-8").splitlines()
    entries = [words for line in lines if len(words := line.partition("#")[0].split()) > 1]
    name = next((words[1] for words in entries if words[1] not in ("localhost", "ip6-localhost")), None)
    if name is None or address_like(name):
        pytest.skip("there is no name in /etc/hosts")

    async def main() -> tuple[str, ...]:
        names = Names(HostsFile({}), ("127.0.0.1:1",))
        try:
            return await names.lookup(name)
        finally:
            await names.close()

    assert set(asyncio.run(main())) & {words[0] for words in entries if name in words}


def _free_port() -> int:
    """Return a port that the system gives to nobody unasked: a socket that got it would hear its own questions."""
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
def test_malformed_properties_are_refused(name: str, value: str) -> None:
    conf = Configuration({name: value})
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        Names.from_conf(conf)


@pytest.mark.parametrize("servers", ["", "127.0.0.1", "127.0.0.1:53,[::1]:5353", "::1", "fe80::1"])
def test_servers_are_taken_with_and_without_a_port(servers: str) -> None:
    Names.from_conf(Configuration({"http.dns.servers": servers}))
