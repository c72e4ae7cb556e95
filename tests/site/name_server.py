"""A DNS server on a loopback address, by UDP and TCP: the first label of a name selects the response.

``slow-300``: after 300 ms. ``lost-2``: no response to the first two queries. ``cut``: truncated over UDP. ``liar``:
first responses to other queries, then the right one. ``broken-2``: SERVFAIL twice; ``broken`` always. ``alias-8``:
eight aliases; ``loop``: endless aliases. ``quiet6``: no response for IPv6. ``only6``: no IPv4. ``none``: NXDOMAIN;
``empty``: no addresses. ``many``: fifty addresses. ``garbage``: no DNS. ``silent``: nothing. ``brief``: TTL 1.
``inside``: 10.0.0.1. ``lossy``: a third of the packets is lost. ``both``: both families. ``v6first-2``: SERVFAIL to
the first two IPv4 queries, an unreachable address to IPv6 queries. Others: 127.0.0.1 for an hour.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_A, _CNAME, _AAAA = 1, 5, 28
_SERVFAIL, _NXDOMAIN = 2, 3
_HEADER = struct.Struct(">HHHHHH")


class NameServer:
    """``address``: in the form of ``http.dns.servers``. ``asked``: queries by name and type, those by TCP apart.

    ``addresses``: IPv4 addresses of some names, before all rules by label.
    """

    def __init__(self, ttl: int = 3600) -> None:
        self.ttl = ttl
        self.asked: Counter[tuple[str, int]] = Counter()
        self.by_tcp: Counter[str] = Counter()
        self.address = ""
        self.addresses: dict[str, str] = {}
        self._random = random.Random(7)

    def names(self) -> Counter[str]:
        """Return the number of queries per name, over all types."""
        found: Counter[str] = Counter()
        for (name, _), count in self.asked.items():
            found[name] += count
        return found

    def answers(self, query: bytes, tcp: bool = False) -> tuple[float, list[bytes]]:
        """Return the delay in seconds and the messages to send."""
        number = int.from_bytes(query[:2])
        name, kind, question = _question(query)
        seen = self.asked[name, kind]
        self.asked[name, kind] += 1
        self.by_tcp[name] += tcp
        how, _, text = name.partition(".")[0].partition("-")
        amount = int(text) if text.isdigit() else 0
        ttl = 1 if how == "brief" else self.ttl
        records = [_record(kind, ttl)] if kind in (_A, _AAAA) else []
        v4 = kind == _A
        if name in self.addresses:
            known = _record(kind, ttl, bytes(map(int, self.addresses[name].split("."))))
            return 0, [_message(number, question, [known] if v4 else [])]
        if how == "slow":
            return amount / 1000, [_message(number, question, records if v4 else [])]
        if how == "silent" or (how == "lost" and seen < amount) or (how == "quiet6" and kind == _AAAA):
            return 0, []
        if how == "lossy" and self._random.random() < 1 / 3:
            return 0, []
        if how == "v6first":
            if not v4:
                return 0, [_message(number, question, [_record(_AAAA, ttl, b"\x20\x01\x0d\xb8" + bytes(12))])]
            if seen < amount:
                return 0, [_message(number, question, [], _SERVFAIL)]
        if how == "cut" and not tcp:
            return 0, [_message(number, question, [], flags=0x8380)]
        if how == "liar":
            other = _message(number ^ 0x5555, question, [_record(_A, ttl, b"\x0a\x09\x08\x07")])
            elsewhere = _message(number, _asked("elsewhere.example", kind), [_record(_A, ttl, b"\x0a\x09\x08\x07")])
            return 0, [other, elsewhere, _message(number, question, records if v4 else [])]
        if how == "broken" and (not text or seen < amount):
            return 0, [_message(number, question, [], _SERVFAIL)]
        if how == "none":
            return 0, [_message(number, question, [], _NXDOMAIN)]
        if how == "garbage":
            return 0, [query[:2] + b"\xff" * 40]
        if how == "loop":
            return 0, [_message(number, question, [_alias(name, ttl)])]
        if how == "alias" and amount:
            rest = name.partition(".")[2]
            chain = [_alias(f"alias-{left}.{rest}", ttl, f"alias-{left + 1}.{rest}") for left in range(amount)]
            last = _record(kind, ttl, name=f"alias-0.{rest}")
            return 0, [_message(number, question, [*reversed(chain), last] if v4 else [*reversed(chain)])]
        if how == "many" and v4:
            records = [_record(_A, ttl, bytes((127, 0, 0, each))) for each in range(1, 51)]
        if how == "inside" and v4:
            records = [_record(_A, ttl, b"\x0a\0\0\x01")]
        if how == "empty" or (how == "only6" and v4):
            records = []
        if how not in ("only6", "both") and kind == _AAAA:
            records = []
        return 0, [_message(number, question, records)]


def _question(query: bytes) -> tuple[str, int, bytes]:
    labels, position = [], 12
    while query[position]:
        labels.append(query[position + 1 : position + 1 + query[position]].decode("ascii").lower())
        position += 1 + query[position]
    return ".".join(labels), int.from_bytes(query[position + 1 : position + 3]), query[12 : position + 5]


def _encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _asked(name: str, kind: int) -> bytes:
    return _encoded(name) + struct.pack(">HH", kind, 1)


def _record(kind: int, ttl: int, data: bytes = b"", name: str = "") -> bytes:
    data = data or (b"\x7f\0\0\x01" if kind == _A else b"\0" * 15 + b"\x01")
    return (_encoded(name) if name else b"\xc0\x0c") + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def _alias(target: str, ttl: int, name: str = "") -> bytes:
    return _record(_CNAME, ttl, _encoded(target), name)


def _message(number: int, question: bytes, records: list[bytes], code: int = 0, flags: int = 0x8180) -> bytes:
    return _HEADER.pack(number, flags | code, 1, len(records), 0, 0) + question + b"".join(records)


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        wait, messages = self._server.answers(data)
        loop = asyncio.get_running_loop()
        for message in messages:
            loop.call_later(wait, self._transport.sendto, message, addr)


@contextmanager
def name_server(ttl: int = 3600, port: int = 0) -> Iterator[NameServer]:
    """Serve on a port, by default a free one, within the block."""
    server, ready, loop = NameServer(ttl), threading.Event(), asyncio.new_event_loop()

    async def by_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                query = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                wait, messages = server.answers(query, tcp=True)
                await asyncio.sleep(wait)
                for message in messages:
                    writer.write(len(message).to_bytes(2) + message)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def serve() -> None:
        tcp = await asyncio.start_server(by_tcp, "127.0.0.1", port)
        taken = tcp.sockets[0].getsockname()[1]
        udp, _ = await loop.create_datagram_endpoint(lambda: _Udp(server), ("127.0.0.1", taken))
        server.address = f"127.0.0.1:{taken}"
        ready.set()
        try:
            await stopped.wait()
        finally:
            udp.close()
            tcp.close()

    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()
