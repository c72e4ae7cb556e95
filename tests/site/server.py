"""ScriptedSite: the n-th GET of a path gets the n-th reply of its list, the last one repeats; requests are recorded.

It runs in a thread with its own loop, on 127.0.0.1 and a free port, until it is stopped. A path may apply to one
``Host`` only (``host/path``); other paths are 404.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Reply:
    """One response.

    ``raw``: the whole response as bytes, instead of status, headers and body. ``pieces``: further writes, ``pause``
    seconds apart; may be endless (with ``length`` false). ``hang``: seconds of silence at the start. ``keep``: keep the
    connection open for another request. ``reset``: reset the connection.
    """

    status: int = 200
    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()
    content_type: str | None = "text/html"
    reason: str = "OK"
    raw: bytes | None = None
    pieces: Iterable[bytes] = ()
    pause: float = 0.0
    hang: float = 0.0
    length: bool = True
    keep: bool = False
    reset: bool = False

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {self.reason}"]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.length and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in self.headers):
            lines.append(f"Content-Length: {len(self.body) + sum(map(len, self.pieces))}")
        lines.append(f"Connection: {'keep-alive' if self.keep else 'close'}")
        return "\r\n".join([*lines, "", ""]).encode("utf-8")


@dataclass
class Seen:
    """A received request: start and end on the monotonic clock, and the number of its connection."""

    path: str
    host: str
    headers: dict[str, str]
    line: str
    began: float
    connection: int
    ended: float = 0.0


@dataclass
class ScriptedSite:
    """The server; use as a context manager. ``certificate``: PEM file with key and certificate, for TLS."""

    replies: dict[str, list[Reply]] = field(default_factory=dict)
    certificate: str | None = None
    address: str = "127.0.0.1"
    port: int = 0

    def __post_init__(self) -> None:
        self.seen: list[Seen] = []
        self.most_at_once = 0
        self._now = 0
        self.request_counts: Counter[str] = Counter()
        self._connections = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="site", daemon=True)

    def on(self, path: str, *replies: Reply) -> None:
        """Script the responses of a path."""
        self.replies[path] = list(replies)

    def url(self, path: str, host: str | None = None) -> str:
        """Return the URL of a path, optionally with another host name."""
        return f"http{'s' if self.certificate else ''}://{host or self.address}:{self.port}{path}"

    def gets(self, path: str) -> int:
        """Return how often a path was requested."""
        return sum(1 for request in self.seen if request.path == path)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the site did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        context = None
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, self.address, self.port, ssl=context, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number = self._connections
        try:
            while await self._answer(reader, writer, number):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        data = await reader.readuntil(b"\r\n\r\n")
        lines = data.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
        path, host = lines[0].split(" ")[1], headers.get("host", "").partition(":")[0]
        seen = Seen(path, host, headers, lines[0], time.monotonic(), number)
        self.seen.append(seen)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        key = host + path if host + path in self.replies else path
        replies = self.replies.get(key) or [Reply(404, b"not here", reason="Not Found")]
        reply = replies[min(self.request_counts[key], len(replies) - 1)]
        self.request_counts[key] += 1
        try:
            if reply.hang:
                await asyncio.sleep(reply.hang)
            if reply.reset:
                writer.transport.abort()
                return False
            writer.write(reply.head() + reply.body if reply.raw is None else reply.raw)
            await writer.drain()
            for piece in reply.pieces:
                await asyncio.sleep(reply.pause)
                writer.write(piece)
                await writer.drain()
        finally:
            seen.ended = time.monotonic()
            self._now -= 1
        return reply.keep
