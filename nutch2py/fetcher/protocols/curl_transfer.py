"""One request on a libcurl easy handle: options, incoming data and the result."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import pycurl

from nutch2py.fetcher.protocols.address_filter import AddressExcludedError
from nutch2py.fetcher.protocols.ca_store import CaStore
from nutch2py.fetcher.protocols.curl_errors import FAILURE_KINDS, PROXY_HANDSHAKE_CODE, get_retry_hint
from nutch2py.fetcher.protocols.fetch_response import (
    FailureKind,
    FetchFailure,
    FetchResponse,
    RetryHint,
    parse_header_lines,
)
from nutch2py.fetcher.protocols.ftp_listing import render_ftp_listing
from nutch2py.fetcher.protocols.http_auth import Credentials
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.fetcher.protocols.local_failures import (
    describe_network_failure,
    describe_proxy_failure,
    find_proxy_refusal,
    is_network_failure,
)
from nutch2py.fetcher.protocols.response_body import BodyDecoder, parse_content_encoding
from nutch2py.fetcher.runtime.fd_budget import describe_socket_error, probe_socket_error
from nutch2py.support.http_date import format_http_date
from nutch2py.url.java_url import parse_url

_CURL_AUTH_SCHEMES = {
    "basic": pycurl.HTTPAUTH_BASIC,
    "digest": pycurl.HTTPAUTH_DIGEST,
    "ntlm": pycurl.HTTPAUTH_NTLM,
}
_FTP_STATUS = {
    pycurl.E_LOGIN_DENIED: 401,
    pycurl.E_REMOTE_ACCESS_DENIED: 404,  # CWD to a missing directory
    pycurl.E_REMOTE_FILE_NOT_FOUND: 404,
    pycurl.E_FTP_COULDNT_RETR_FILE: 404,
}
_NO_SOCKET_CODES = frozenset({pycurl.E_COULDNT_CONNECT, pycurl.E_OUT_OF_MEMORY})
"""libcurl codes that can mean a failed socket creation."""
_CLOSED_CODES = frozenset({pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR})
_SOCKS_SERVER_FAILURES = frozenset({9, 19, 20, 21, 24})
"""Values of CURLINFO_PROXY_ERROR about the server: too long a host name, refused, failed, unreachable, TTL expired."""
_UNSAFE_CHARACTERS = re.compile(r"[^\x21-\x7e]")  # not allowed in a request line


def _percent_encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "replace"))


class RequestOverrides(NamedTuple):
    """Parts of a request set by Scrapy add-ons.

    Attributes:
        header_lines: All header lines.
        method: HTTP method.
        body: Request body.
        proxy: Proxy URL, "" for the proxy of ``http.proxy.host``.
        proxy_header_lines: Header lines for the proxy only.
    """

    header_lines: tuple[bytes, ...]
    method: str = "GET"
    body: bytes = b""
    proxy: str = ""
    proxy_header_lines: tuple[bytes, ...] = ()

    @property
    def is_plain_get(self) -> bool:
        """Whether it is a GET without a body and without its own proxy."""
        return self.method == "GET" and not (self.body or self.proxy)


class CurlTransfer:
    """A reusable easy handle; :meth:`prepare` sets up a request, :meth:`build_response` returns its result."""

    __slots__ = (
        "_addresses",
        "_excluded_error",
        "_has_overrides",
        "_has_resolve_option",
        "_header_count",
        "_headers_ended",
        "_http",
        "_is_ftp",
        "_limit",
        "_proxy_url",
        "_socket_error",
        "body",
        "curl",
        "future",
        "has_credentials",
        "header_bytes",
        "header_lines",
        "is_active",
        "limit_exceeded",
        "raw_request",
        "started_at",
        "status_line",
        "timed_out",
        "url",
    )  # fmt: skip

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        self.curl: Any = pycurl.Curl()
        self.future: asyncio.Future[FetchResponse] | None = None
        self._has_resolve_option = self.has_credentials = self._is_ftp = self._has_overrides = False
        self._set_common_options()
        self._reset("", -1)

    def _reset(self, url: str, limit: int) -> None:
        self.url, self._limit = url, limit
        self.header_lines: list[bytes] = []
        self.body: BodyDecoder | None = None
        self.header_bytes = self._header_count = 0
        self._headers_ended = False  # the blank line after the headers was received
        self.limit_exceeded = self._socket_error = self._proxy_url = ""
        self._excluded_error: AddressExcludedError | None = None
        self._addresses: Sequence[str] = ()
        self.raw_request = self.status_line = b""
        self.timed_out = False
        self.is_active = True  # received data since the last sweep
        self.started_at = time.monotonic()

    def _set_common_options(self) -> None:
        """Set the options common to all requests."""
        http, curl = self._http, self.curl
        version = pycurl.CURL_HTTP_VERSION_1_1 if http.http11 else pycurl.CURL_HTTP_VERSION_1_0
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if http.http2 else version)
        if not (http.http11 or http.http2):
            # some servers reply to HTTP/1.0 with HTTP/1.1 and close: libcurl would reuse a dead connection
            curl.setopt(pycurl.FORBID_REUSE, 1)
        curl.setopt(pycurl.PATH_AS_IS, 1)  # URL normalizers handle dot segments
        curl.setopt(pycurl.NOSIGNAL, 1)
        ftp = pycurl.PROTO_FTP if "ftp" in http.protocols else 0
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS | ftp)
        curl.setopt(pycurl.HTTP09_ALLOWED, True)  # build_response() decides whether to accept it
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(http.timeout * 1000)))
        if http.time_limit > 0:
            curl.setopt(pycurl.TIMEOUT_MS, max(1, int(http.time_limit * 1000)))
        curl.setopt(pycurl.SSL_VERIFYPEER, int(http.check_certificates))
        curl.setopt(pycurl.SSL_VERIFYHOST, 2 if http.check_certificates else 0)
        if http.check_certificates:
            self._set_ca_store(CaStore.of_system())
        curl.setopt(pycurl.PROXY, "")  # ignore proxies of the environment
        curl.setopt(pycurl.DNS_CACHE_TIMEOUT, 60)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        if http.keep_exchange:
            curl.setopt(pycurl.VERBOSE, 1)
            curl.setopt(pycurl.DEBUGFUNCTION, self._on_debug)
        if http.address_filter:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.HTTPHEADER, self._encode_header_lines(()))

    def _set_ca_store(self, store: CaStore) -> None:
        """Trust the authorities of a store, whichever one this build of libcurl would use."""
        for option, path in ((pycurl.CAINFO, store.file), (pycurl.CAPATH, store.folder)):
            if path:
                self.curl.setopt(option, path)
            else:
                self.curl.unsetopt(option)

    def _encode_header_lines(self, more: tuple[str, ...]) -> list[bytes]:
        common = [f"{name}: {value}" for name, value in self._http.build_request_headers()]
        return [line.encode("utf-8") for line in (*common, *more)]

    def prepare(
        self,
        url: str,
        host: str,
        port: int,
        limit: int,
        headers: tuple[str, ...],
        addresses: Sequence[str],
        overrides: RequestOverrides | None = None,
    ) -> None:
        """Set up a request.

        Args:
            url: URL to request.
            host: Host of the URL.
            port: Port of the URL.
            limit: Content limit in bytes, -1 for none.
            headers: Header lines in addition to the common ones.
            addresses: Addresses of the host, if known.
            overrides: Parts of the request set by add-ons, including all header lines.

        Raises:
            AddressExcludedError: A proxy would connect to an address that the filter excludes.
        """
        self._reset(url, limit)
        self._addresses = addresses
        curl, http = self.curl, self._http
        curl.setopt(pycurl.URL, _UNSAFE_CHARACTERS.sub(_percent_encode, url) if _UNSAFE_CHARACTERS.search(url) else url)
        signature = http.signature_lines(url)
        if overrides is not None:
            curl.setopt(pycurl.HTTPHEADER, [*overrides.header_lines, *(line.encode("ascii") for line in signature)])
        elif headers or signature or http.rotating_agents:
            curl.setopt(pycurl.HTTPHEADER, self._encode_header_lines((*headers, *signature)))
        if addresses or self._has_resolve_option:
            resolved = ",".join(f"[{a}]" if ":" in a else a for a in addresses)
            # "+" lets libcurl expire the entry
            curl.setopt(pycurl.RESOLVE, [f"+{host}:{port}:{resolved}"] if resolved else [])
            self._has_resolve_option = bool(addresses)
        if overrides is not None and not overrides.is_plain_get:
            self._apply_overrides(overrides, host, addresses)
        elif http.proxy is not None:
            self._set_proxy(host, addresses)
        if http.credentials and (credentials := http.credentials.find(host, port)) is not None:
            self._set_credentials(credentials)
        is_ftp = url[:4].lower() == "ftp:"
        if is_ftp or self._is_ftp:
            self._set_ftp_options(is_ftp)

    def _apply_overrides(self, overrides: RequestOverrides, host: str, addresses: Sequence[str]) -> None:
        """Set the options that only few requests need."""
        curl = self.curl
        self._has_overrides = True
        if overrides.proxy:
            self._check_proxied_addresses(host, addresses)
            self._proxy_url = overrides.proxy
            curl.setopt(pycurl.PROXY, overrides.proxy)
            curl.setopt(pycurl.HEADEROPT, pycurl.HEADER_SEPARATE)
            curl.setopt(pycurl.PROXYHEADER, list(overrides.proxy_header_lines))
        elif self._http.proxy is not None:
            self._set_proxy(host, addresses)
        if overrides.body or overrides.method not in ("GET", "HEAD"):
            curl.setopt(pycurl.POSTFIELDS, overrides.body)
        if overrides.method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        else:
            curl.setopt(pycurl.CUSTOMREQUEST, overrides.method)

    def _set_credentials(self, credentials: Credentials) -> None:
        """Let libcurl reply to a 401; the credentials are not sent before the server requests them."""
        self.has_credentials = True
        self.curl.setopt(pycurl.USERPWD, credentials.login)
        scheme = _CURL_AUTH_SCHEMES.get(credentials.scheme)
        self.curl.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_ANY if scheme is None else scheme | pycurl.HTTPAUTH_ONLY)

    def _set_ftp_options(self, is_ftp: bool) -> None:
        """Set the options specific to FTP, or reset them."""
        http, self._is_ftp = self._http, is_ftp
        timeout = http.ftp.timeout if is_ftp else http.timeout
        self.curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(timeout * 1000)))
        if is_ftp:
            self.curl.setopt(pycurl.USERPWD, http.ftp.login)
            self.curl.setopt(pycurl.OPT_FILETIME, 1)
        elif not self.has_credentials:
            self.curl.unsetopt(pycurl.USERPWD)

    def _on_debug(self, kind: int, data: bytes) -> None:
        if kind == pycurl.INFOTYPE_HEADER_OUT:
            self.raw_request = data  # the last request, if authentication took two

    def _set_proxy(self, host: str, addresses: Sequence[str]) -> None:
        proxy, address_filter = self._http.proxy, self._http.address_filter
        if proxy is None or proxy.is_bypassed(host):
            self.curl.setopt(pycurl.PROXY, "")
            if address_filter:
                self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
            return
        self._check_proxied_addresses(host, addresses)
        self._proxy_url = proxy.url
        self.curl.setopt(pycurl.PROXY, proxy.url)
        if proxy.credentials:
            self.curl.setopt(pycurl.PROXYUSERPWD, proxy.credentials)
            self.curl.setopt(pycurl.PROXYAUTH, pycurl.HTTPAUTH_ANY)

    def _check_proxied_addresses(self, host: str, addresses: Sequence[str]) -> None:
        """Check the known addresses, since the proxy opens the connection."""
        address_filter = self._http.address_filter
        for address in addresses or [host]:
            if address_filter and not address_filter.is_host_allowed(address):
                raise address_filter.exclusion_error(address)
        if address_filter:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, _open_any_socket)

    def reset_for_reuse(self, headers: tuple[str, ...]) -> None:
        """Undo the options that :meth:`prepare` set for one request."""
        if self._has_overrides:
            self.curl.reset()
            self._has_overrides = self._has_resolve_option = self._is_ftp = False
            self._set_common_options()
        if (headers or self._http.signer) and not self._http.rotating_agents:
            self.curl.setopt(pycurl.HTTPHEADER, self._encode_header_lines(()))
        self.future = None
        self.header_lines, self.body = [], None

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        host = address.addr[0]
        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        if not self._http.address_filter.is_allowed(host):
            self._excluded_error = self._http.address_filter.exclusion_error(host)
            return pycurl.SOCKET_BAD
        try:
            return _CurlSocket(address)
        except OSError as error:
            self._socket_error = describe_socket_error(error.errno or 0)
            return pycurl.SOCKET_BAD

    def _on_header(self, line: bytes) -> int | None:
        self.is_active = True
        self._header_count += 1
        self.header_bytes += len(line)
        if self._header_count > self._http.header_count or self.header_bytes > self._http.header_limit:
            self.limit_exceeded = f"more than {self._http.header_count} header lines or {self._http.header_limit} bytes"
            return -1
        if self._is_ftp:
            return None
        if line[:5].upper() == b"HTTP/" and (not self.header_lines or self._headers_ended):
            self.status_line = line
            self.header_lines.clear()  # the previous lines were an interim response
            self._headers_ended = False
        elif line in (b"\r\n", b"\n"):
            self._headers_ended = True
        else:
            self.header_lines.append(line)
        return None

    def _on_body(self, data: bytes) -> int | None:
        self.is_active = True
        body = self.body
        if body is None:
            encoding = None
            if not self._is_ftp and any(line[:16].lower() == b"content-encoding" for line in self.header_lines):
                for name, value in parse_header_lines(self.header_lines):
                    if name.lower() == "content-encoding":
                        encoding = value
            body = self.body = BodyDecoder(parse_content_encoding(encoding), self._limit)
        return None if body.feed(data) else -1

    def build_response(self, code: int, message: str) -> FetchResponse:
        """Return the result of the transfer; ``code`` and ``message`` are libcurl's, 0 for success."""
        response = self._ftp_response(code, message) if self._is_ftp else self._http_response(code, message)
        if self._proxy_url and response.failure is None and (refusal := find_proxy_refusal(response)):
            response.failure = FetchFailure(FailureKind.PROXY, describe_proxy_failure(refusal))
        if self._http.store_ip:
            response.ip = self.curl.getinfo(pycurl.PRIMARY_IP) or ""
        return response

    def _http_response(self, code: int, message: str) -> FetchResponse:
        status = int(self.curl.getinfo(pycurl.RESPONSE_CODE))
        body = self.body
        response = FetchResponse(self.url, status, self.header_lines, body.content() if body is not None else b"")
        response.elapsed_ms = int((time.monotonic() - self.started_at) * 1000)
        response.raw_request, response.status_line = self.raw_request, self.status_line
        if body is not None and body.truncated:
            response.truncated = "length"
            code = 0 if code == pycurl.E_WRITE_ERROR else code
        if status == 0 and code == 0:
            return self._judge_without_status_line(response)
        if code == 0 and not self._headers_ended:
            response.failure = FetchFailure(
                FailureKind.PROTOCOL, "connection closed within the headers", RetryHint.MALFORMED_HEADERS
            )
        elif code != 0 and not self._accept_partial(response, code):
            response.failure = self._make_failure(code, message)
        return response

    def _ftp_response(self, code: int, message: str) -> FetchResponse:
        """Return the result of an FTP transfer in HTTP terms; a directory becomes a page of links."""
        body = self.body
        response = FetchResponse(self.url, 200, [], body.content() if body is not None else b"")
        response.elapsed_ms = int((time.monotonic() - self.started_at) * 1000)
        if body is not None and body.truncated:
            response.truncated, code = "length", 0
        if code in _FTP_STATUS:
            return FetchResponse(self.url, _FTP_STATUS[code], elapsed_ms=response.elapsed_ms)
        if code:
            response.failure = self._make_failure(code, message)
        elif parse_url(self.url).file.endswith("/"):
            response.header_lines.append(b"Content-Type: text/html; charset=utf-8")
            response.content = render_ftp_listing(
                parse_url(self.url).file, response.content, self._http.local_files.link_parent
            )
        else:
            modified = self.curl.getinfo(pycurl.INFO_FILETIME)
            if modified >= 0:
                response.header_lines.append(f"Last-Modified: {format_http_date(modified * 1000)}".encode())
        return response

    def _accept_partial(self, response: FetchResponse, code: int) -> bool:
        """Return whether a transfer that broke off within the body is accepted as a response."""
        if not self._headers_ended or self.limit_exceeded or not response.status:  # 0: a response to CONNECT only
            return False
        if response.status != 200:  # the body adds nothing to the status
            response.truncated = "disconnect"
            return True
        if code == pycurl.E_OPERATION_TIMEDOUT and not self.timed_out and response.content:
            response.truncated = "time"  # http.time.limit
            return True
        encoding = response.get_header("Transfer-Encoding") or ""
        if code == pycurl.E_PARTIAL_FILE and "chunked" not in encoding.lower():
            response.truncated = "disconnect"  # fewer bytes than Content-Length, which Nutch accepts
            return True
        if self._http.keep_partial and response.content:
            response.truncated = "disconnect"
            return True
        return False

    def _judge_without_status_line(self, response: FetchResponse) -> FetchResponse:
        """Accept or reject a response without a status line (HTTP/0.9, ``ICY 200 OK``, garbage)."""
        first = response.content[:200].split(b"\n", 1)[0].rstrip(b"\r").decode("latin-1")
        if self._http.lenient:
            response.status = 200
        else:
            response.failure = FetchFailure(FailureKind.PROTOCOL, f"bad status line {first[:80]!r}")
        return response

    def _make_failure(self, code: int, message: str) -> FetchFailure:
        if self.limit_exceeded:
            return FetchFailure(FailureKind.LIMIT, self.limit_exceeded)
        if self._excluded_error is not None:
            return FetchFailure(FailureKind.ADDRESS_FILTER, str(self._excluded_error))
        if self._proxy_url and (proxy_failure := self._find_proxy_failure(code, message)) is not None:
            return proxy_failure
        if self.timed_out:
            return FetchFailure(FailureKind.TIMEOUT, f"read timed out after {self._http.timeout:g} s")
        refused = code == pycurl.E_COULDNT_CONNECT and self.curl.getinfo(pycurl.OS_ERRNO) == errno.ECONNREFUSED
        if code in _NO_SOCKET_CODES and not refused and (socket_error := self._socket_error or probe_socket_error()):
            return FetchFailure(FailureKind.SOCKET, socket_error)
        if code == pycurl.E_COULDNT_CONNECT:
            error_number = int(self.curl.getinfo(pycurl.OS_ERRNO))
            if not refused and not self._proxy_url and is_network_failure(error_number, self._addresses):
                return FetchFailure(FailureKind.NETWORK, describe_network_failure(message))
            return FetchFailure(FailureKind.REFUSED if refused else FailureKind.CONNECT, message)
        if code == pycurl.E_PEER_FAILED_VERIFICATION and (absence := CaStore.of_system().describe_absence(message)):
            return FetchFailure(FailureKind.TLS_SETUP, absence)
        description = message or f"curl error {code}"
        return FetchFailure(FAILURE_KINDS.get(code, FailureKind.OTHER), description, get_retry_hint(code, message))

    def _find_proxy_failure(self, code: int, message: str) -> FetchFailure | None:
        """Return the failure if the proxy caused it, and not the server behind it."""
        curl, hint = self.curl, get_retry_hint(code, message)
        is_connected = curl.getinfo(pycurl.CONNECT_TIME) > 0 or curl.getinfo(pycurl.REQUEST_SIZE) > 0
        if code == PROXY_HANDSHAKE_CODE and int(curl.getinfo(pycurl.PROXY_ERROR)) in _SOCKS_SERVER_FAILURES:
            return FetchFailure(FailureKind.CONNECT, message)
        if code in (pycurl.E_COULDNT_RESOLVE_PROXY, PROXY_HANDSHAKE_CODE) or (
            not is_connected and code in (pycurl.E_COULDNT_CONNECT, pycurl.E_OPERATION_TIMEDOUT)
        ):
            if socket_error := self._socket_error or probe_socket_error():
                return FetchFailure(FailureKind.SOCKET, socket_error)
            reason = message or f"no connection to {self._proxy_url} within {self._http.timeout:g} s"
            return FetchFailure(FailureKind.PROXY, describe_proxy_failure(reason), hint)
        connect_status = int(curl.getinfo(pycurl.HTTP_CONNECTCODE))
        if connect_status and not 200 <= connect_status < 300:
            headers = FetchResponse(self.url, connect_status, self.header_lines)
            if refusal := find_proxy_refusal(headers, connect_status):
                return FetchFailure(FailureKind.PROXY, describe_proxy_failure(refusal))
        elif (
            not (connect_status or self.header_bytes)
            and code in _CLOSED_CODES
            and self._proxy_url.startswith(("http:", "https:"))
        ):  # most proxies report a server that closes the connection as 502 or 504; the others need a second look
            hint = RetryHint.CLOSED_BY_PROXY if hint is RetryHint.NONE else hint
            return FetchFailure(FailureKind.PROXY, describe_proxy_failure(message or f"curl error {code}"), hint)
        return None


class _CurlSocket:
    """A socket for libcurl: pycurl duplicates the descriptor and drops this object, which closes its own."""

    __slots__ = ("_socket",)

    def __init__(self, address: Any) -> None:
        self._socket = socket.socket(address.family, address.socktype, address.protocol)

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


def _open_any_socket(_purpose: int, address: object) -> _CurlSocket:
    return _CurlSocket(address)
