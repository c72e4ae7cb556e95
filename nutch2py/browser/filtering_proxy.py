"""The forward proxy that all requests of the browser go through: it resolves names, asks the gate, and counts.

Chromium is told to resolve nothing and to bypass nothing, so that a request, a redirect, a WebSocket or a worker
reaches an address in no other way. The address that the gate has judged is the one that is connected to: a name that
resolves anew finds the gate anew. It listens on the loopback, and a login that only this browser knows keeps other
users of the machine out; it tells the contexts apart, too.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.errors import iter_causes
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError
from nutch2py.fetcher.protocols.fetch_response import parse_header_lines
from nutch2py.fetcher.protocols.http_settings import HttpSettings

WARM_UP_HOST = "nutch2py.invalid"
"""A name of no host (RFC 6761), which the proxy answers itself: the browser learns its login there."""

_MAX_HEAD_BYTES = 65_536  # bytes of a request's or an answer's head
_CHUNK_BYTES = 65_536
_HEAD_TIMEOUT = 60.0
_HOP_BY_HOP_HEADERS = frozenset(
    {"proxy-authorization", "proxy-connection", "connection", "keep-alive", "te", "upgrade"}
)
_CONNECTION_HEADERS = frozenset({b"connection", b"keep-alive"})
_AUTH_CHALLENGE = b'Proxy-Authenticate: Basic realm="nutch2py"\r\n'


class _ProxyTarget(NamedTuple):
    host: str
    port: int
    path: str


class _RequestBlockedError(Exception):
    """A request that is not carried; the reason is one of few words, which are counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FilteringProxy:
    """The proxy of one browser; :meth:`start` before anything else. ``blocked``: hosts nothing is asked of."""

    def __init__(self, http: HttpSettings, blocked_hosts: Iterable[str]) -> None:
        self._http, self._blocked_hosts = http, frozenset(blocked_hosts)
        self._traffic_by_user: dict[str, ContextTraffic] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._upstream = _upstream_proxy(http)
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port of the loopback."""
        self._server = await asyncio.start_server(
            self._handle_connection, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES, backlog=256
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and end what is under way."""
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def is_blocked(self, host: str) -> bool:
        """Tell whether nothing is asked of a host, in lower case."""
        return any(host == name or host.endswith("." + name) for name in self._blocked_hosts)

    def add_context(self, traffic: ContextTraffic) -> None:
        """Let a context in."""
        self._traffic_by_user[traffic.username] = traffic

    def remove_context(self, traffic: ContextTraffic) -> None:
        """Let a context in no more."""
        traffic.finish_page()
        self._traffic_by_user.pop(traffic.username, None)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        lane = None
        try:
            while True:
                async with asyncio.timeout(_HEAD_TIMEOUT):
                    head = await reader.readuntil(b"\r\n\r\n")
                lines = head[:-4].split(b"\r\n")
                lane = self._authenticate(lines)
                if lane is None:
                    await _send_status(writer, 407, _AUTH_CHALLENGE)
                    continue
                lane.connections.add(writer.transport)
                if not await self._handle_request(lane, lines, reader, writer):
                    return
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that went away or speaks no HTTP; what goes wrong behind us is told to it
        finally:
            self._tasks.discard(task)
            if lane is not None:
                lane.connections.discard(writer.transport)
            with suppress(OSError):
                writer.close()

    def _authenticate(self, lines: list[bytes]) -> ContextTraffic | None:
        for name, value in parse_header_lines(lines[1:]):
            if name.lower() == "proxy-authorization" and value[:6].lower() == "basic ":
                with suppress(ValueError):
                    user, _, secret = b64decode(value[6:], validate=True).decode("latin-1").partition(":")
                    lane = self._traffic_by_user.get(user)
                    if lane is not None and hmac.compare_digest(secret.encode(), lane.password.encode()):
                        return lane
        return None

    async def _handle_request(
        self, lane: ContextTraffic, lines: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Carry one request; tell whether the connection goes on."""
        method, _, rest = lines[0].decode("latin-1").partition(" ")
        where = rest.rpartition(" ")[0]
        tunnel = method == "CONNECT"
        target = _parse_target(where, tunnel)
        if target.host == WARM_UP_HOST:
            await _send_status(writer, 200)
            return True
        try:
            if target.path == "/favicon.ico" and not tunnel:
                raise _RequestBlockedError("icon")
            if not lane.count_request():
                raise _RequestBlockedError("limit")
            up_reader, up_writer = await self._connect(target, tunnel)
        except _RequestBlockedError as refusal:
            lane.blocked_requests[refusal.reason] += 1
            if lane.limit_hit:  # a page that hears of it asks again, and again
                await lane.page_finished.wait()
            if tunnel:  # else no word, which the page would take for the server's
                await _send_status(writer, 403)
            return False
        lane.connections.add(up_writer.transport)
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _copy_both_ways(lane, reader, writer, up_reader, up_writer)
            else:
                await self._forward(lane, method, target, where, lines, (reader, writer, up_reader, up_writer))
        finally:
            lane.connections.discard(up_writer.transport)
            with suppress(OSError):
                up_writer.close()
        return False

    async def _connect(self, target: _ProxyTarget, tunnel: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the target, or to the proxy that stands before it; _Refused says why there is none."""
        host = target.host.lower()
        if self.is_blocked(host):
            raise _RequestBlockedError("blocked")
        http = self._http
        try:
            async with asyncio.timeout(max(0.001, http.timeout)):
                if self._upstream is not None and http.proxy is not None and not http.proxy.is_bypassed(host):
                    if any(
                        not http.address_filter.is_host_allowed(known)
                        for known in http.dns_cache.hosts_file.lookup(host) or [host]
                    ):
                        raise _RequestBlockedError("gate")
                    return await _connect_upstream(*self._upstream, target, tunnel)
                return await self._connect_direct(target)
        except AddressExcludedError:
            raise _RequestBlockedError("gate") from None
        except (OSError, UnicodeError, TimeoutError, asyncio.IncompleteReadError) as error:
            excluded = any(isinstance(cause, AddressExcludedError) for cause in iter_causes(error))
            raise _RequestBlockedError("gate" if excluded else "unreachable") from None

    async def _connect_direct(self, target: _ProxyTarget) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first address of a host that can be reached, none of which the gate refuses."""
        loop, gate = asyncio.get_running_loop(), self._http.address_filter
        tcp = socket.IPPROTO_TCP
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=tcp)
        last: OSError = OSError(f"no address of {target.host}")
        for family, kind, protocol, _, address in found:
            if gate and not gate.is_allowed(str(address[0])):
                last = AddressExcludedError(str(address[0]))
                continue
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            try:
                await loop.sock_connect(connection, address)
                return await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
            except OSError as error:
                connection.close()
                last = error
            except BaseException:
                connection.close()
                raise
        raise last

    async def _forward(
        self,
        lane: ContextTraffic,
        method: str,
        target: _ProxyTarget,
        where: str,
        lines: list[bytes],
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Carry a request of HTTP itself, one a connection: what follows would go to a server that was not judged."""
        reader, writer, up_reader, up_writer = streams
        proxied = self._upstream is not None and self._http.proxy is not None
        direct = not proxied or (self._http.proxy is not None and self._http.proxy.is_bypassed(target.host.lower()))
        length = 0
        sent = [f"{method} {target.path if direct else where} HTTP/1.1".encode("latin-1")]
        for name, value in parse_header_lines(lines[1:]):
            if name.lower() == "content-length":
                length = int(value)
            if name.lower() not in _HOP_BY_HOP_HEADERS:
                sent.append(f"{name}: {value}".encode("latin-1"))
        sent.append(b"Connection: close")
        if not direct and self._upstream is not None and self._upstream[2]:
            sent.append(self._upstream[2])
        up_writer.write(b"\r\n".join(sent) + b"\r\n\r\n")
        body = asyncio.ensure_future(_copy_stream(reader, up_writer, lane, length))
        try:
            status, *answered = await _read_response_head(up_reader, lane)
            kept = [line for line in answered if line.partition(b":")[0].strip().lower() not in _CONNECTION_HEADERS]
            writer.write(b"\r\n".join([status, *kept, b"Connection: close"]) + b"\r\n\r\n")
            await _copy_stream(up_reader, writer, lane)
        finally:
            body.cancel()
            await asyncio.gather(body, return_exceptions=True)


async def _read_response_head(reader: asyncio.StreamReader, lane: ContextTraffic) -> list[bytes]:
    """Return the lines of an answer's head; what comes before it (100, 103) is left out.

    One that asks for a login at a proxy is none: to the browser it would be us who asks, and its own is forgotten.
    """
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if not lane.count_received(len(head)):
            raise OSError("no more is wanted")
        status, *lines = head[:-4].split(b"\r\n")
        code = status.partition(b" ")[2][:3]
        if code == b"407":
            return [b"HTTP/1.1 502 nutch2py", *lines]
        if not code.startswith(b"1") or code == b"101":
            return [status, *lines]


async def _copy_stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lane: ContextTraffic, length: int | None = None
) -> None:
    """Carry bytes to the end of the stream, or ``length`` of them; those of answers (without a length) are counted."""
    left = length
    while left is None or left > 0:
        data = await reader.read(_CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left))
        if not data or (left is None and not lane.count_received(len(data))):
            return
        writer.write(data)
        await writer.drain()
        left = None if left is None else left - len(data)


async def _copy_both_ways(
    lane: ContextTraffic,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until either side ends; what is sent counts as what comes."""
    ways = [
        asyncio.ensure_future(_copy_stream(reader, up_writer, lane)),
        asyncio.ensure_future(_copy_stream(up_reader, writer, lane)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _send_status(writer: asyncio.StreamWriter, status: int, more: bytes = b"") -> None:
    writer.write(b"HTTP/1.1 %d nutch2py\r\nContent-Length: 0\r\n%s\r\n" % (status, more))
    await writer.drain()


def _parse_target(where: str, tunnel: bool) -> _ProxyTarget:
    """Read ``host:port`` of a CONNECT, or the absolute URL of any other request; ValueError for another scheme."""
    if tunnel:
        host, _, port = where.rpartition(":")
        return _ProxyTarget(host.strip("[]"), int(port), "")
    scheme, _, rest = where.partition("://")
    if scheme.lower() != "http":
        raise ValueError(f"{scheme} is not carried")
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, "80"
    return _ProxyTarget(host.strip("[]"), int(port or 80), slash + path or "/")


def _upstream_proxy(http: HttpSettings) -> tuple[str, int, bytes] | None:
    """Return host, port and login line of ``http.proxy.*``; None where there is none."""
    if http.proxy is None:
        return None
    host, _, port = http.proxy.url.partition("://")[2].rpartition(":")
    login = http.proxy.credentials
    line = b"Proxy-Authorization: Basic " + b64encode(login.encode("utf-8")) if login else b""
    return host, int(port), line


async def _connect_upstream(
    host: str, port: int, login: bytes, target: _ProxyTarget, tunnel: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a proxy, which the gate is not asked about, and for a tunnel have it connect on."""
    connection = await asyncio.to_thread(socket.create_connection, (host, port))  # the loop's own would ask it
    connection.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
    if tunnel:
        name = f"[{target.host}]" if ":" in target.host else target.host
        lines = [f"CONNECT {name}:{target.port} HTTP/1.1", f"Host: {name}:{target.port}"]
        writer.write("\r\n".join(lines).encode("latin-1") + (b"\r\n" + login if login else b"") + b"\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        if head.split(b" ", 2)[1:2] != [b"200"]:
            writer.close()
            raise OSError(f"the proxy {host} opens no tunnel to {target.host}")
    return reader, writer
