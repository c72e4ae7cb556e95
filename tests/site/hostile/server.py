"""Serves the tricks, each on its own address, so that none delays another by politeness."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Self

from tests.site.hostile import bombs, documents, pages, redirects, sites, transfers
from tests.site.hostile.trick import Request, Trick, page

TRICKS: tuple[Trick, ...] = tuple(
    trick for module in (redirects, transfers, bombs, documents, pages, sites) for trick in module.tricks
)
NETWORK = "127.0.72"
_PER_NETWORK = 250


def address_of(number: int) -> str:
    """Return the address of a trick by its index in the table."""
    return f"127.0.{72 + number // _PER_NETWORK}.{1 + number % _PER_NETWORK}"


class HostileServer:
    """The server, in a thread with its own loop; use as a context manager. ``port``: 0 for a free one.

    ``asked``: names of the tricks, once per request.
    """

    def __init__(self, tricks: tuple[Trick, ...] = TRICKS, port: int = 0) -> None:
        self.tricks, self.port = tricks, port
        self.asked: list[str] = []
        self._of = {address_of(number): trick for number, trick in enumerate(tricks)}
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="hostile", daemon=True)

    def url(self, trick: Trick) -> str:
        """Return the URL of a trick's first page."""
        return f"{trick.scheme}://{address_of(self.tricks.index(trick))}:{self.port}{trick.first}"

    def seeds(self) -> list[str]:
        """Return the lines of a seed file with all tricks."""
        return [self.url(trick) + ("\t-sitemap" if trick.sitemap else "") for trick in self.tricks]

    def prepare(self) -> None:
        """Prepare the responses in advance, so that none is delayed by a busy processor."""
        for trick in self.tricks:
            if trick.make is not None:
                trick.make()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - reported to the thread that waits for the server
            self._failed = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        servers = []
        for address in self._of:
            server = await asyncio.start_server(self._accept, address, self.port)
            self.port = server.sockets[0].getsockname()[1]
            servers.append(server)
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the crawler has had enough, or the server is to end
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("sockname")[:2]
        trick = self._of[host]
        path = "/"
        if trick.scheme == "http":
            line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].split(b" ")
            path = line[1].decode("latin-1") if len(line) > 1 else "/"
        request = Request(path, f"http://{host}:{port}", host, port)
        self.asked.append(trick.name)
        answer = trick.answer
        if path.partition("?")[0] == "/robots.txt":
            answer = trick.robots or (lambda _: page(b"none", "text/plain", status="404 Not Found"))
        for step in await asyncio.to_thread(answer, request):
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.sleep(step)
