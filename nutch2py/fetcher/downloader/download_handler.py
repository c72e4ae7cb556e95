"""A Scrapy download handler over libcurl's multi interface, driven by the asyncio event loop.

A page costs libcurl's C code and three Python calls; connections are reused where the server allows it. Options beyond
HTTP come from :class:`~nutch2py.fetcher.protocols.http_settings.HttpSettings` in the Scrapy setting ``NUTCH2PY_HTTP``.
Bodies are decoded and truncated at the limit; the response keeps the header lines as sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urljoin

import pycurl
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Response
from scrapy.responsetypes import responsetypes

from nutch2py.fetcher.downloader.scrapy_call import ENCODING_HEADER, TRUNCATED_HEADER, build_headers, get_scrapy_call
from nutch2py.fetcher.protocols import lenient_http
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError
from nutch2py.fetcher.protocols.curl_transfer import CurlTransfer, RequestOverrides
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse, RetryHint
from nutch2py.fetcher.protocols.http_settings import HTTP_SETTINGS_KEY, HttpSettings
from nutch2py.fetcher.protocols.local_failures import DnsUnavailableError
from nutch2py.url.java_url import parse_url

_EXCEPTIONS: dict[FailureKind, type[Exception]] = {
    FailureKind.DNS: CannotResolveHostError,
    FailureKind.REFUSED: DownloadConnectionRefusedError,
    FailureKind.TIMEOUT: DownloadTimeoutError,
    # IgnoreRequest, since a retry by an add-on cannot succeed
    FailureKind.ADDRESS_FILTER: IgnoreRequest,
    FailureKind.URL: IgnoreRequest,
    FailureKind.LIMIT: IgnoreRequest,
}
_ENCODING_HEADER, _TRUNCATED_HEADER = ENCODING_HEADER.encode(), TRUNCATED_HEADER.encode()
_PROXY_AUTHORIZATION = b"Proxy-Authorization"


class PycurlDownloadHandler(BaseDownloadHandler):
    """Sends HTTP(S) and FTP requests; ``request.meta["limit"]`` overrides the content limit.

    Direct mode calls :meth:`fetch`, which reports failures in the response. Scrapy calls :meth:`download_request`,
    which honours the request's headers, method, body and proxy, and raises failures as Scrapy's exceptions.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings[HTTP_SETTINGS_KEY]
        if not isinstance(settings, HttpSettings):
            raise TypeError(f"the setting {HTTP_SETTINGS_KEY} must hold HttpSettings")
        self._http = settings
        self._loop = asyncio.get_running_loop()
        self._multi: Any = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, settings.max_connections)
        self._idle_transfers: list[CurlTransfer] = []
        self._active_transfers: dict[Any, CurlTransfer] = {}
        self._watched_sockets: dict[int, int] = {}
        self._timer: asyncio.Handle | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._silent_since: dict[CurlTransfer, float] = {}
        self._proxied_url = ""
        """URL for which the proxy has responded last; "" if it has not, or no longer responds."""
        self._closed = False

    async def download_request(self, request: Request) -> Response:
        """Send one request; raise the matching Scrapy exception if it fails."""
        call = get_scrapy_call(request)
        limit = request.meta.get("limit", self._http.content_limit)
        fetched = await self.fetch(request.url, limit, overrides=_build_overrides(request))
        result: Any = (
            _to_scrapy_response(request, fetched) if fetched.failure is None else _to_exception(fetched.failure)
        )
        if call is not None:
            call.fetch_response, call.handler_result = fetched, result
        if fetched.failure is not None:
            raise result
        return result  # type: ignore[no-any-return]

    async def fetch(
        self, url: str, limit: int, headers: tuple[str, ...] = (), overrides: RequestOverrides | None = None
    ) -> FetchResponse:
        """Request a URL; repeat the request where another way of sending it can succeed."""
        response = await self._perform(url, limit, headers, overrides)
        if response.retry_hint is RetryHint.DEAD_CONNECTIONS:
            response = await self._perform(url, limit, headers, overrides, fresh=True)
        if response.retry_hint is RetryHint.BAD_CONTENT_LENGTH and self._http.lenient:
            response = await self._perform(url, limit, headers, overrides, ignore_length=True)
        elif (
            response.retry_hint is RetryHint.MALFORMED_HEADERS
            and self._http.proxy is None
            and (overrides is None or overrides.is_plain_get)
        ):
            address = response.ip
            response = await lenient_http.fetch_leniently(
                self._http, response.url, limit, self._header_lines(response.url, headers, overrides)
            )
            response.ip = response.ip or address
        if self._http.proxy is not None and (overrides is None or overrides.is_plain_get):
            return await self._judge_proxied(response, limit, headers, overrides)
        return response

    async def _judge_proxied(
        self, response: FetchResponse, limit: int, headers: tuple[str, ...], overrides: RequestOverrides | None
    ) -> FetchResponse:
        """Decide whether the proxy or the server closed a connection without a response.

        It was the server if the proxy responds for another URL, the last for which it did, and closes again for this
        one. Without such a URL it was the proxy.
        """
        url = response.url
        if response.retry_hint is not RetryHint.CLOSED_BY_PROXY:
            self._note_proxied(response)
            return response
        if not (known := self._proxied_url):
            return response
        probe = await self._perform(urljoin(known, "/robots.txt"), 0, (), None, fresh=True)
        if not _has_server_response(probe):
            if self._proxied_url == known:
                self._proxied_url = ""
            return response
        repeated = await self._perform(url, limit, headers, overrides, fresh=True)
        if repeated.retry_hint is RetryHint.CLOSED_BY_PROXY:
            repeated.failure = FetchFailure(
                FailureKind.CLOSED, "connection closed without a response, through a proxy that responds for others"
            )
        self._note_proxied(repeated)
        return repeated

    def _note_proxied(self, response: FetchResponse) -> None:
        proxy, parts = self._http.proxy, parse_url(response.url)
        is_proxied = proxy is not None and parts.protocol in ("http", "https") and not proxy.is_bypassed(parts.host)
        if is_proxied and _has_server_response(response):
            self._proxied_url = response.url

    def _header_lines(self, url: str, headers: tuple[str, ...], overrides: RequestOverrides | None) -> list[str]:
        signature = self._http.signature_lines(url)
        if overrides is not None:
            return [*(line.decode("utf-8", "replace") for line in overrides.header_lines), *signature]
        common = (f"{name}: {value}" for name, value in self._http.build_request_headers())
        return [*common, *headers, *signature]

    async def _perform(
        self,
        url: str,
        limit: int,
        headers: tuple[str, ...],
        overrides: RequestOverrides | None,
        *,
        ignore_length: bool = False,
        fresh: bool = False,
    ) -> FetchResponse:
        try:
            parts = parse_url(url)
            host = unquote(parts.host) if "%" in parts.host else parts.host
            addresses = await self._resolve(host, overrides)
            transfer = self._idle_transfers.pop() if self._idle_transfers else CurlTransfer(self._http)
            port = parts.default_port if parts.port < 0 else parts.port
            transfer.prepare(url, host, port, limit, headers, addresses, overrides)
        except AddressExcludedError as error:
            return FetchResponse(url, failure=FetchFailure(FailureKind.ADDRESS_FILTER, str(error)))
        except DnsUnavailableError as error:
            return FetchResponse(url, failure=FetchFailure(FailureKind.DNS_UNAVAILABLE, str(error.strerror)))
        except socket.gaierror as error:
            return FetchResponse(url, failure=FetchFailure(FailureKind.DNS, str(error.strerror)))
        except ValueError as error:
            return FetchResponse(url, failure=FetchFailure(FailureKind.URL, str(error)))
        transfer.curl.setopt(pycurl.IGNORE_CONTENT_LENGTH, int(ignore_length))
        transfer.curl.setopt(pycurl.FRESH_CONNECT, int(fresh))
        future = transfer.future = self._loop.create_future()
        self._active_transfers[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)
        if self._sweep_timer is None and self._http.timeout > 0:
            self._expire_stalled()
        try:
            response: FetchResponse = await future
        finally:
            if transfer.curl in self._active_transfers:  # cancelled
                self._remove(transfer)
            if transfer.has_credentials:  # libcurl would send the credentials with the next request as well
                transfer.curl.close()
            else:
                transfer.reset_for_reuse(headers)
                self._idle_transfers.append(transfer)
        if response.failure is not None and response.failure.kind is FailureKind.DNS:
            await self._check_system_resolver(host, response.failure)
        return response

    async def _check_system_resolver(self, host: str, failure: FetchFailure) -> None:
        """Set the kind of a lookup that failed in libcurl, which does not report whether a DNS server answered."""
        try:
            await self._loop.getaddrinfo(host, None)
        except DnsUnavailableError:
            failure.kind = FailureKind.DNS_UNAVAILABLE
        except OSError:
            return

    async def _resolve(self, host: str, overrides: RequestOverrides | None) -> Sequence[str]:
        """Return the addresses of a host, or none if libcurl or a proxy resolves it."""
        http = self._http
        if (overrides is not None and overrides.proxy) or (http.proxy is not None and not http.proxy.is_bypassed(host)):
            return http.dns_cache.hosts_file.lookup(host) or ()
        return await http.dns_cache.resolve(host)

    def _remove(self, transfer: CurlTransfer) -> None:
        del self._active_transfers[transfer.curl]
        self._silent_since.pop(transfer, None)
        self._multi.remove_handle(transfer.curl)

    def _on_socket(self, event: int, fd: int, _multi: Any, _data: Any) -> None:
        """Watch a socket for libcurl; called from inside libcurl, so it must not call into it."""
        old_events = self._watched_sockets.get(fd, 0)
        new_events = 0 if event == pycurl.POLL_REMOVE else event
        if old_events & pycurl.POLL_IN and not new_events & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        elif new_events & pycurl.POLL_IN and not old_events & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._socket_action, fd, pycurl.CSELECT_IN)
        if old_events & pycurl.POLL_OUT and not new_events & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)
        elif new_events & pycurl.POLL_OUT and not old_events & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._socket_action, fd, pycurl.CSELECT_OUT)
        if new_events:
            self._watched_sockets[fd] = new_events
        else:
            self._watched_sockets.pop(fd, None)

    def _on_timer(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if milliseconds == 0:
            self._timer = self._loop.call_soon(self._on_timeout)
        elif milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._on_timeout)

    def _on_timeout(self) -> None:
        self._timer = None
        self._socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _socket_action(self, fd: int, events: int) -> None:
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
        transfer = self._active_transfers.get(curl)
        if transfer is None or transfer.future is None:
            return
        response = transfer.build_response(code, message)
        self._remove(transfer)
        if not transfer.future.done():
            transfer.future.set_result(response)

    def _expire_stalled(self) -> None:
        """End transfers that received nothing for ``http.timeout``, as a socket timeout does in Nutch."""
        now = self._loop.time()
        interval = min(1.0, self._http.timeout / 10)
        for transfer in list(self._active_transfers.values()):
            if transfer.is_active:
                transfer.is_active = False
                self._silent_since[transfer] = now - interval
            elif now - self._silent_since.get(transfer, now) >= self._http.timeout:
                transfer.timed_out = True
                self._finish(transfer.curl, pycurl.E_OPERATION_TIMEDOUT, "")
        self._sweep_timer = self._loop.call_later(interval, self._expire_stalled) if self._active_transfers else None

    async def close(self) -> None:
        """Cancel active transfers and close the connections."""
        for transfer in list(self._active_transfers.values()):
            self._remove(transfer)
            if transfer.future is not None:
                transfer.future.cancel()
        self._closed = True
        for handle in (self._timer, self._sweep_timer):
            if handle is not None:
                handle.cancel()
        for transfer in self._idle_transfers:
            transfer.curl.close()
        self._idle_transfers.clear()
        self._multi.close()
        for fd in self._watched_sockets:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
        self._watched_sockets.clear()


def _has_server_response(response: FetchResponse) -> bool:
    """Return whether a response came from a server, or from a proxy on its behalf."""
    return response.status > 0 and (response.failure is None or response.failure.kind is not FailureKind.PROXY)


def _build_overrides(request: Request) -> RequestOverrides:
    lines: list[bytes] = []
    proxy_lines: list[bytes] = []
    for name, values in dict.items(request.headers):  # Headers.items() would normalize each name again
        (proxy_lines if name == _PROXY_AUTHORIZATION else lines).extend(name + b": " + value for value in values)
    return RequestOverrides(
        tuple(lines), request.method, request.body, request.meta.get("proxy") or "", tuple(proxy_lines)
    )


def _to_exception(failure: FetchFailure) -> Exception:
    return _EXCEPTIONS.get(failure.kind, DownloadFailedError)(failure.message)


def _to_scrapy_response(request: Request, fetched: FetchResponse) -> Response:
    """Create a response of the class that fits the decoded content."""
    fields = []
    for name, value in fetched.iter_headers():
        is_encoding = len(name) == 16 and name.lower() == "content-encoding"
        fields.append((_ENCODING_HEADER if is_encoding else name.encode("latin-1"), value.encode("latin-1")))
    if fetched.truncated:
        fields.append((_TRUNCATED_HEADER, fetched.truncated.encode()))
    headers = build_headers(fields)
    response_class = responsetypes.from_args(headers=headers, url=request.url, body=fetched.content)
    response = response_class(request.url, fetched.status, None, fetched.content, request=request)
    response.headers = headers
    return response
