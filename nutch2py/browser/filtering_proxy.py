"""Forward proxy for all requests of the browser: resolves names, applies the address filter and counts traffic.

Chromium resolves nothing and bypasses nothing, so that requests, redirects, WebSockets and workers reach addresses
only through this proxy. It connects to the very address that the filter has checked, so DNS rebinding cannot bypass
it. It listens on the loopback; a login known only to this browser excludes other users of the machine and identifies
the contexts.
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
from nutch2py.support.invariants import not_none

WARM_UP_HOST = "nutch2py.invalid"
"""A non-existent host (RFC 6761) that the proxy serves itself, where the browser learns its login."""

_MAX_HEAD_BYTES = 65_536  # bytes of a request's or response's head
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
    """A blocked request; the reason is a counter name."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FilteringProxy:
    """The proxy of a browser pool; call :meth:`start` first. Requests to ``blocked_hosts`` are blocked."""

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
        """Stop listening and cancel active connections."""
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def is_blocked(self, host: str) -> bool:
        """Return whether requests to a host, in lower case, are blocked."""
        return any(host == name or host.endswith("." + name) for name in self._blocked_hosts)

    def add_context(self, traffic: ContextTraffic) -> None:
        """Accept a context."""
        self._traffic_by_user[traffic.username] = traffic

    def remove_context(self, traffic: ContextTraffic) -> None:
        """Remove a context and abort its connections."""
        traffic.finish_page()
        self._traffic_by_user.pop(traffic.username, None)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = not_none(asyncio.current_task(), "current task")
        self._tasks.add(task)
        traffic = None
        try:
            while True:
                async with asyncio.timeout(_HEAD_TIMEOUT):
                    head = await reader.readuntil(b"\r\n\r\n")
                lines = head[:-4].split(b"\r\n")
                traffic = self._authenticate(lines)
                if traffic is None:
                    await _send_status(writer, 407, _AUTH_CHALLENGE)
                    continue
                traffic.connections.add(writer.transport)
                if not await self._handle_request(traffic, lines, reader, writer):
                    return
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client disconnected or speaks no HTTP; upstream errors are reported to it
        finally:
            self._tasks.discard(task)
            if traffic is not None:
                traffic.connections.discard(writer.transport)
            with suppress(OSError):
                writer.close()

    def _authenticate(self, lines: list[bytes]) -> ContextTraffic | None:
        for name, value in parse_header_lines(lines[1:]):
            if name.lower() == "proxy-authorization" and value[:6].lower() == "basic ":
                with suppress(ValueError):
                    user, _, secret = b64decode(value[6:], validate=True).decode("latin-1").partition(":")
                    traffic = self._traffic_by_user.get(user)
                    if traffic is not None and hmac.compare_digest(secret.encode(), traffic.password.encode()):
                        return traffic
        return None

    async def _handle_request(
        self, traffic: ContextTraffic, lines: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Handle one request; return whether the connection stays open."""
        method, _, rest = lines[0].decode("latin-1").partition(" ")
        uri = rest.rpartition(" ")[0]
        is_tunnel = method == "CONNECT"
        target = _parse_target(uri, is_tunnel)
        if target.host == WARM_UP_HOST:
            await _send_status(writer, 200)
            return True
        try:
            if target.path == "/favicon.ico" and not is_tunnel:
                raise _RequestBlockedError("icon")
            if not traffic.count_request():
                raise _RequestBlockedError("limit")
            up_reader, up_writer = await self._connect(target, is_tunnel)
        except _RequestBlockedError as error:
            traffic.blocked_requests[error.reason] += 1
            if traffic.limit_hit:  # a page that receives a rejection retries endlessly
                await traffic.page_finished.wait()
            if is_tunnel:  # otherwise no response, which the page would take for the server's
                await _send_status(writer, 403)
            return False
        traffic.connections.add(up_writer.transport)
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _copy_both_ways(traffic, reader, writer, up_reader, up_writer)
            else:
                await self._forward(traffic, method, target, uri, lines, (reader, writer, up_reader, up_writer))
        finally:
            traffic.connections.discard(up_writer.transport)
            with suppress(OSError):
                up_writer.close()
        return False

    async def _connect(
        self, target: _ProxyTarget, is_tunnel: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the target or the upstream proxy; raise _RequestBlockedError with the reason of a failure."""
        host = target.host.lower()
        if self.is_blocked(host):
            raise _RequestBlockedError("blocked")
        http = self._http
        try:
            async with asyncio.timeout(max(0.001, http.timeout)):
                if self._upstream is not None and http.proxy is not None and not http.proxy.is_bypassed(host):
                    if any(
                        not http.address_filter.is_host_allowed(address)
                        for address in http.dns_cache.hosts_file.lookup(host) or [host]
                    ):
                        raise _RequestBlockedError("address_filter")
                    return await _connect_upstream(*self._upstream, target, is_tunnel)
                return await self._connect_direct(target)
        except AddressExcludedError:
            raise _RequestBlockedError("address_filter") from None
        except (OSError, UnicodeError, TimeoutError, asyncio.IncompleteReadError) as error:
            excluded = any(isinstance(cause, AddressExcludedError) for cause in iter_causes(error))
            raise _RequestBlockedError("address_filter" if excluded else "unreachable") from None

    async def _connect_direct(self, target: _ProxyTarget) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first reachable address of a host that the address filter allows."""
        loop, address_filter = asyncio.get_running_loop(), self._http.address_filter
        tcp = socket.IPPROTO_TCP
        entries = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=tcp)
        last_error: OSError = OSError(f"no address of {target.host}")
        for family, kind, protocol, _, address in entries:
            if address_filter and not address_filter.is_allowed(str(address[0])):
                last_error = AddressExcludedError(str(address[0]))
                continue
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            try:
                await loop.sock_connect(connection, address)
                return await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
            except OSError as error:
                connection.close()
                last_error = error
            except BaseException:
                connection.close()
                raise
        raise last_error

    async def _forward(
        self,
        traffic: ContextTraffic,
        method: str,
        target: _ProxyTarget,
        uri: str,
        lines: list[bytes],
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Forward a plain HTTP request; one per connection, since a further one could be for an unchecked server."""
        reader, writer, up_reader, up_writer = streams
        has_upstream = self._upstream is not None and self._http.proxy is not None
        is_direct = not has_upstream or (
            self._http.proxy is not None and self._http.proxy.is_bypassed(target.host.lower())
        )
        length = 0
        request_lines = [f"{method} {target.path if is_direct else uri} HTTP/1.1".encode("latin-1")]
        for name, value in parse_header_lines(lines[1:]):
            if name.lower() == "content-length":
                length = int(value)
            if name.lower() not in _HOP_BY_HOP_HEADERS:
                request_lines.append(f"{name}: {value}".encode("latin-1"))
        request_lines.append(b"Connection: close")
        if not is_direct and self._upstream is not None and self._upstream[2]:
            request_lines.append(self._upstream[2])
        up_writer.write(b"\r\n".join(request_lines) + b"\r\n\r\n")
        body = asyncio.ensure_future(_copy_stream(reader, up_writer, traffic, length))
        try:
            status, *response_lines = await _read_response_head(up_reader, traffic)
            kept_lines = [
                line for line in response_lines if line.partition(b":")[0].strip().lower() not in _CONNECTION_HEADERS
            ]
            writer.write(b"\r\n".join([status, *kept_lines, b"Connection: close"]) + b"\r\n\r\n")
            await _copy_stream(up_reader, writer, traffic)
        finally:
            body.cancel()
            await asyncio.gather(body, return_exceptions=True)


async def _read_response_head(reader: asyncio.StreamReader, traffic: ContextTraffic) -> list[bytes]:
    """Return the lines of a response's head; interim responses (100, 103) are skipped.

    A 407 of the server becomes a 502: the browser would attribute it to this proxy and discard its login.
    """
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if not traffic.count_received(len(head)):
            raise OSError("traffic limit reached")
        status, *lines = head[:-4].split(b"\r\n")
        code = status.partition(b" ")[2][:3]
        if code == b"407":
            return [b"HTTP/1.1 502 nutch2py", *lines]
        if not code.startswith(b"1") or code == b"101":
            return [status, *lines]


async def _copy_stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: ContextTraffic, length: int | None = None
) -> None:
    """Copy the stream, or ``length`` bytes of it; response bytes (without a length) are counted."""
    remaining = length
    while remaining is None or remaining > 0:
        data = await reader.read(_CHUNK_BYTES if remaining is None else min(_CHUNK_BYTES, remaining))
        if not data or (remaining is None and not traffic.count_received(len(data))):
            return
        writer.write(data)
        await writer.drain()
        remaining = None if remaining is None else remaining - len(data)


async def _copy_both_ways(
    traffic: ContextTraffic,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    """Copy bytes in both directions until either side ends; both directions are counted."""
    copies = [
        asyncio.ensure_future(_copy_stream(reader, up_writer, traffic)),
        asyncio.ensure_future(_copy_stream(up_reader, writer, traffic)),
    ]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _send_status(writer: asyncio.StreamWriter, status: int, extra_headers: bytes = b"") -> None:
    writer.write(b"HTTP/1.1 %d nutch2py\r\nContent-Length: 0\r\n%s\r\n" % (status, extra_headers))
    await writer.drain()


def _parse_target(uri: str, is_tunnel: bool) -> _ProxyTarget:
    """Parse ``host:port`` of a CONNECT, or an absolute URL; raise ValueError for other schemes than http."""
    if is_tunnel:
        host, _, port = uri.rpartition(":")
        return _ProxyTarget(host.strip("[]"), int(port), "")
    scheme, _, rest = uri.partition("://")
    if scheme.lower() != "http":
        raise ValueError(f"{scheme} is not supported")
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, "80"
    return _ProxyTarget(host.strip("[]"), int(port or 80), slash + path or "/")


def _upstream_proxy(http: HttpSettings) -> tuple[str, int, bytes] | None:
    """Return host, port and login header of ``http.proxy.*``, or None."""
    if http.proxy is None:
        return None
    host, _, port = http.proxy.url.partition("://")[2].rpartition(":")
    login = http.proxy.credentials
    line = b"Proxy-Authorization: Basic " + b64encode(login.encode("utf-8")) if login else b""
    return host, int(port), line


async def _connect_upstream(
    host: str, port: int, login: bytes, target: _ProxyTarget, is_tunnel: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the upstream proxy, exempt from the address filter; for a tunnel, send a CONNECT."""
    connection = await asyncio.to_thread(
        socket.create_connection, (host, port)
    )  # the event loop would apply the address filter
    connection.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
    if is_tunnel:
        name = f"[{target.host}]" if ":" in target.host else target.host
        lines = [f"CONNECT {name}:{target.port} HTTP/1.1", f"Host: {name}:{target.port}"]
        writer.write("\r\n".join(lines).encode("latin-1") + (b"\r\n" + login if login else b"") + b"\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        if head.split(b" ", 2)[1:2] != [b"200"]:
            writer.close()
            raise OSError(f"the proxy {host} rejected the tunnel to {target.host}")
    return reader, writer
