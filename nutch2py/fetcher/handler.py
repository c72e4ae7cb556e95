"""A Scrapy download handler over libcurl's multi interface, driven by the sockets and timers of the asyncio loop.

A page costs libcurl's C code and three calls of Python; connections are used again where the server allows it. What
the handler knows beyond HTTP is in :class:`~nutch2py.fetcher.http_settings.HttpSettings`, which it takes from the
Scrapy setting ``NUTCH2PY_HTTP``. The response's body is decoded and cut at the limit; its ``answer`` holds the header
lines as they were sent and what else Scrapy's response has no place for.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pycurl
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response

from nutch2py.fetcher import lenient
from nutch2py.fetcher.answer import Answer, Cause, Failure, FailureKind
from nutch2py.fetcher.gate import AddressExcludedError
from nutch2py.fetcher.http_settings import SETTING, HttpSettings
from nutch2py.fetcher.transfer import Transfer, Wish
from nutch2py.url.javaurl import parse_url


class AnswerResponse(Response):
    """A Scrapy response that carries the fetcher's :class:`~nutch2py.fetcher.answer.Answer`."""

    answer: Answer


class PycurlDownloadHandler(BaseDownloadHandler):
    """Carries GET requests; ``request.meta["limit"]`` overrides the limit of the body.

    A failure is no exception here, it comes as ``answer.failure``: fetching what is broken is an everyday matter.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings[SETTING]
        if not isinstance(settings, HttpSettings):
            raise TypeError(f"the setting {SETTING} must hold HttpSettings")
        self._http = settings
        self._loop = asyncio.get_running_loop()
        self._multi: Any = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, settings.connections)
        self._pool: list[Transfer] = []
        self._running: dict[Any, Transfer] = {}
        self._watched: dict[int, int] = {}
        self._timer: asyncio.Handle | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._quiet: dict[Transfer, float] = {}
        self._closed = False

    async def download_request(self, request: Request) -> Response:
        """Carry one request and wait for its end."""
        meta = request.meta
        answer = await self.ask(request.url, meta.get("limit", self._http.content_limit), meta.get("header_lines", ()))
        response = AnswerResponse(request.url, answer.status or 200, None, answer.content, request=request)
        response.answer = answer
        return response

    async def ask(self, url: str, limit: int, headers: tuple[str, ...] = (), wish: Wish | None = None) -> Answer:
        """Ask for a URL, and once more where another way of asking can do better."""
        answer = await self._get(url, limit, headers, wish)
        if answer.cause is Cause.DEAD_CONNECTIONS:
            answer = await self._get(url, limit, headers, wish, fresh=True)
        if answer.cause is Cause.BAD_LENGTH and self._http.lenient:
            answer = await self._get(url, limit, headers, wish, ignore_length=True)
        elif answer.cause is Cause.BAD_HEAD and self._http.proxy is None and (wish is None or wish.plain):
            address = answer.ip
            answer = await lenient.get(self._http, answer.url, limit, self._fields(headers, wish))
            answer.ip = answer.ip or address
        return answer

    def _fields(self, headers: tuple[str, ...], wish: Wish | None) -> list[str]:
        if wish is not None:
            return [line.decode("utf-8", "replace") for line in wish.lines]
        return [*(f"{name}: {value}" for name, value in self._http.request_headers()), *headers]

    async def _get(
        self,
        url: str,
        limit: int,
        headers: tuple[str, ...],
        wish: Wish | None,
        *,
        ignore_length: bool = False,
        fresh: bool = False,
    ) -> Answer:
        try:
            parts = parse_url(url)
            host = unquote(parts.host) if "%" in parts.host else parts.host
            addresses = await self._addresses(host, wish)
            transfer = self._pool.pop() if self._pool else Transfer(self._http)
            port = parts.default_port if parts.port < 0 else parts.port
            transfer.prepare(url, host, port, limit, headers, addresses, wish)
        except AddressExcludedError as error:
            return Answer(url, failure=Failure(FailureKind.GATE, str(error)))
        except socket.gaierror as error:
            return Answer(url, failure=Failure(FailureKind.DNS, str(error.strerror)))
        except ValueError as error:
            return Answer(url, failure=Failure(FailureKind.URL, str(error)))
        transfer.curl.setopt(pycurl.IGNORE_CONTENT_LENGTH, int(ignore_length))
        transfer.curl.setopt(pycurl.FRESH_CONNECT, int(fresh))
        future = transfer.future = self._loop.create_future()
        self._running[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)
        if self._sweeper is None and self._http.timeout > 0:
            self._sweep()
        try:
            answer: Answer = await future
        finally:
            if transfer.curl in self._running:  # cancelled
                self._release(transfer)
            if transfer.logged_in:  # libcurl would send the login with the next request, unasked
                transfer.curl.close()
            else:
                transfer.ready_again(headers)
                self._pool.append(transfer)
        return answer

    async def _addresses(self, host: str, wish: Wish | None) -> Sequence[str]:
        """Return the addresses of a host, none where libcurl or a proxy will see to it."""
        http = self._http
        if (wish is not None and wish.proxy) or (http.proxy is not None and not http.proxy.excepts(host)):
            return http.names.hosts.lookup(host) or ()
        return await http.names.lookup(host)

    def _release(self, transfer: Transfer) -> None:
        del self._running[transfer.curl]
        self._quiet.pop(transfer, None)
        self._multi.remove_handle(transfer.curl)

    def _on_socket(self, event: int, fd: int, _multi: Any, _data: Any) -> None:
        """Watch a socket as libcurl asks: called from inside libcurl, so it must not call into it."""
        before = self._watched.get(fd, 0)
        wanted = 0 if event == pycurl.POLL_REMOVE else event
        if before & pycurl.POLL_IN and not wanted & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        elif wanted & pycurl.POLL_IN and not before & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._act, fd, pycurl.CSELECT_IN)
        if before & pycurl.POLL_OUT and not wanted & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)
        elif wanted & pycurl.POLL_OUT and not before & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._act, fd, pycurl.CSELECT_OUT)
        if wanted:
            self._watched[fd] = wanted
        else:
            self._watched.pop(fd, None)

    def _on_timer(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if milliseconds == 0:
            self._timer = self._loop.call_soon(self._on_time)
        elif milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, events: int) -> None:
        if self._closed:
            return
        self._multi.socket_action(fd, events)
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for curl in done:
                self._finish(curl, 0, "")
            for curl, code, message in failed:
                self._finish(curl, code, message)

    def _finish(self, curl: Any, code: int, message: str) -> None:
        transfer = self._running.get(curl)
        if transfer is None or transfer.future is None:
            return
        answer = transfer.answer(code, message)
        self._release(transfer)
        if not transfer.future.done():
            transfer.future.set_result(answer)

    def _sweep(self) -> None:
        """End the transfers over which nothing came for ``http.timeout``, as a socket's time-out would in Nutch."""
        now = self._loop.time()
        interval = min(1.0, self._http.timeout / 10)
        for transfer in list(self._running.values()):
            if transfer.active:
                transfer.active = False
                self._quiet[transfer] = now - interval
            elif now - self._quiet.get(transfer, now) >= self._http.timeout:
                transfer.timed_out = True
                self._finish(transfer.curl, pycurl.E_OPERATION_TIMEDOUT, "")
        self._sweeper = self._loop.call_later(interval, self._sweep) if self._running else None

    async def close(self) -> None:
        """End what still runs and let go of the connections."""
        for transfer in list(self._running.values()):
            self._release(transfer)
            if transfer.future is not None:
                transfer.future.cancel()
        self._closed = True
        for handle in (self._timer, self._sweeper):
            if handle is not None:
                handle.cancel()
        for transfer in self._pool:
            transfer.curl.close()
        self._pool.clear()
        self._multi.close()
        for fd in self._watched:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
        self._watched.clear()
