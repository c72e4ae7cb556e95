"""One GET on a libcurl easy handle: its options, what comes in, and what the end of it means."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import pycurl

from nutch2py.fetcher.answer import Answer, Cause, Failure, FailureKind, header_fields
from nutch2py.fetcher.auth import Credentials
from nutch2py.fetcher.body import Body, encoding_of
from nutch2py.fetcher.curl_codes import KINDS, cause_of
from nutch2py.fetcher.descriptors import lacking, lacking_now
from nutch2py.fetcher.ftp import ftp_listing
from nutch2py.fetcher.gate import AddressExcludedError
from nutch2py.fetcher.http_settings import HttpSettings
from nutch2py.schedule.http_date import format_http_date
from nutch2py.url.javaurl import parse_url

_SCHEMES = {
    "basic": pycurl.HTTPAUTH_BASIC,
    "digest": pycurl.HTTPAUTH_DIGEST,
    "ntlm": pycurl.HTTPAUTH_NTLM,
}
_FTP_STATUS = {
    pycurl.E_LOGIN_DENIED: 401,
    pycurl.E_REMOTE_ACCESS_DENIED: 404,  # CWD to a folder that is not there
    pycurl.E_REMOTE_FILE_NOT_FOUND: 404,
    pycurl.E_FTP_COULDNT_RETR_FILE: 404,
}
_WITHOUT_SOCKET = frozenset({pycurl.E_COULDNT_CONNECT, pycurl.E_OUT_OF_MEMORY})
"""What libcurl says when it cannot make a socket, among other things."""
_UNSAFE = re.compile(r"[^\x21-\x7e]")  # what cannot stand in a request line


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "replace"))


class Wish(NamedTuple):
    """What add-ons of Scrapy made of a request.

    ``lines``: all its header lines. ``proxy``: a URL, "" for that of ``http.proxy.host``; ``of_proxy``: header lines
    for it alone.
    """

    lines: tuple[bytes, ...]
    method: str = "GET"
    body: bytes = b""
    proxy: str = ""
    of_proxy: tuple[bytes, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is a GET without a body, by the way that the properties say."""
        return self.method == "GET" and not (self.body or self.proxy)


class Transfer:
    """An easy handle that is used again and again; :meth:`prepare` begins a request, :meth:`answer` ends it."""

    __slots__ = (
        "_count", "_ended", "_excluded", "_ftp", "_http", "_lacking", "_limit", "_resolved", "_wished", "active",
        "body", "curl", "future", "lines", "logged_in", "past_limit", "received", "sent", "started", "status_line",
        "timed_out", "url",
    )  # fmt: skip

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        self.curl: Any = pycurl.Curl()
        self.future: asyncio.Future[Answer] | None = None
        self._resolved = self.logged_in = self._ftp = self._wished = False
        self._set_up()
        self._reset("", -1)

    def _reset(self, url: str, limit: int) -> None:
        self.url, self._limit = url, limit
        self.lines: list[bytes] = []
        self.body: Body | None = None
        self.received = self._count = 0
        self._ended = False  # the blank line after the headers was seen
        self.past_limit = self._excluded = self._lacking = ""
        self.sent = self.status_line = b""
        self.timed_out = False
        self.active = True  # since the sweep before
        self.started = time.monotonic()

    def _set_up(self) -> None:
        """Set the options that are the same for every request."""
        http, curl = self._http, self.curl
        version = pycurl.CURL_HTTP_VERSION_1_1 if http.http11 else pycurl.CURL_HTTP_VERSION_1_0
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if http.http2 else version)
        if not (http.http11 or http.http2):
            # some servers answer HTTP/1.0 as HTTP/1.1 and close all the same: libcurl would keep what is dead
            curl.setopt(pycurl.FORBID_REUSE, 1)
        curl.setopt(pycurl.PATH_AS_IS, 1)  # dot segments are the normalizers' matter
        curl.setopt(pycurl.NOSIGNAL, 1)
        ftp = pycurl.PROTO_FTP if "ftp" in http.protocols else 0
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS | ftp)
        curl.setopt(pycurl.HTTP09_ALLOWED, True)  # what such an answer is worth is decided in answer()
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(http.timeout * 1000)))
        if http.time_limit > 0:
            curl.setopt(pycurl.TIMEOUT_MS, max(1, int(http.time_limit * 1000)))
        curl.setopt(pycurl.SSL_VERIFYPEER, int(http.check_certificates))
        curl.setopt(pycurl.SSL_VERIFYHOST, 2 if http.check_certificates else 0)
        curl.setopt(pycurl.PROXY, "")  # not what the environment says
        curl.setopt(pycurl.DNS_CACHE_TIMEOUT, 60)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        if http.keep_exchange:
            curl.setopt(pycurl.VERBOSE, 1)
            curl.setopt(pycurl.DEBUGFUNCTION, self._on_debug)
        if http.gate:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.HTTPHEADER, self._header_lines(()))

    def _header_lines(self, more: tuple[str, ...]) -> list[bytes]:
        own = [f"{name}: {value}" for name, value in self._http.request_headers()]
        return [line.encode("utf-8") for line in (*own, *more)]

    def prepare(
        self,
        url: str,
        host: str,
        port: int,
        limit: int,
        headers: tuple[str, ...],
        addresses: Sequence[str],
        wish: Wish | None = None,
    ) -> None:
        """Set up a request; ``headers``: lines beyond those of every request; a ``wish`` has all of them.

        ``addresses``: of the host, if known.

        Raises AddressExcludedError when a proxy would be asked for an address that the gate refuses.
        """
        self._reset(url, limit)
        curl, http = self.curl, self._http
        curl.setopt(pycurl.URL, _UNSAFE.sub(_escape, url) if _UNSAFE.search(url) else url)
        if wish is not None:
            curl.setopt(pycurl.HTTPHEADER, list(wish.lines))
        elif headers or http.agents:
            curl.setopt(pycurl.HTTPHEADER, self._header_lines(headers))
        if addresses or self._resolved:
            known = ",".join(f"[{a}]" if ":" in a else a for a in addresses)
            # "+": libcurl forgets it in time, too
            curl.setopt(pycurl.RESOLVE, [f"+{host}:{port}:{known}"] if known else [])
            self._resolved = bool(addresses)
        if wish is not None and not wish.plain:
            self._fulfil(wish, host, addresses)
        elif http.proxy is not None:
            self._set_proxy(host, addresses)
        if http.logins and (credentials := http.logins.of(host, port)) is not None:
            self._log_in(credentials)
        ftp = url[:4].lower() == "ftp:"
        if ftp or self._ftp:
            self._set_ftp(ftp)

    def _fulfil(self, wish: Wish, host: str, addresses: Sequence[str]) -> None:
        """Set what one request in many has."""
        curl = self.curl
        self._wished = True
        if wish.proxy:
            self._past_gate(host, addresses)
            curl.setopt(pycurl.PROXY, wish.proxy)
            curl.setopt(pycurl.HEADEROPT, pycurl.HEADER_SEPARATE)
            curl.setopt(pycurl.PROXYHEADER, list(wish.of_proxy))
        elif self._http.proxy is not None:
            self._set_proxy(host, addresses)
        if wish.body or wish.method not in ("GET", "HEAD"):
            curl.setopt(pycurl.POSTFIELDS, wish.body)
        if wish.method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        else:
            curl.setopt(pycurl.CUSTOMREQUEST, wish.method)

    def _log_in(self, credentials: Credentials) -> None:
        """Let libcurl answer a 401; the login is not sent before the server asks for it."""
        self.logged_in = True
        self.curl.setopt(pycurl.USERPWD, credentials.login)
        scheme = _SCHEMES.get(credentials.scheme)
        self.curl.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_ANY if scheme is None else scheme | pycurl.HTTPAUTH_ONLY)

    def _set_ftp(self, ftp: bool) -> None:
        """Set what is different for FTP, or set it back."""
        http, self._ftp = self._http, ftp
        timeout = http.ftp.timeout if ftp else http.timeout
        self.curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(timeout * 1000)))
        if ftp:
            self.curl.setopt(pycurl.USERPWD, http.ftp.login)
            self.curl.setopt(pycurl.OPT_FILETIME, 1)
        elif not self.logged_in:
            self.curl.unsetopt(pycurl.USERPWD)

    def _on_debug(self, kind: int, data: bytes) -> None:
        if kind == pycurl.INFOTYPE_HEADER_OUT:
            self.sent = data  # of the last request, when a login took two

    def _set_proxy(self, host: str, addresses: Sequence[str]) -> None:
        proxy, gate = self._http.proxy, self._http.gate
        if proxy is None or proxy.excepts(host):
            self.curl.setopt(pycurl.PROXY, "")
            if gate:
                self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
            return
        self._past_gate(host, addresses)
        self.curl.setopt(pycurl.PROXY, proxy.url)
        if proxy.credentials:
            self.curl.setopt(pycurl.PROXYUSERPWD, proxy.credentials)
            self.curl.setopt(pycurl.PROXYAUTH, pycurl.HTTPAUTH_ANY)

    def _past_gate(self, host: str, addresses: Sequence[str]) -> None:
        """Let a proxy open the connection: only an address that is known here can be judged here."""
        gate = self._http.gate
        for address in addresses or [host]:
            if gate and not gate.accepts_name(address):
                raise AddressExcludedError(address)
        if gate:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, _open_any_socket)

    def ready_again(self, headers: tuple[str, ...]) -> None:
        """Take back what :meth:`prepare` set for one request only."""
        if self._wished:
            self.curl.reset()
            self._wished = self._resolved = self._ftp = False
            self._set_up()
        if headers and not self._http.agents:
            self.curl.setopt(pycurl.HTTPHEADER, self._header_lines(()))
        self.future = None
        self.lines, self.body = [], None

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        host = address.addr[0]
        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        if not self._http.gate.accepts(host):
            self._excluded = host
            return pycurl.SOCKET_BAD
        try:
            return _OpenedSocket(address)
        except OSError as error:
            self._lacking = lacking(error.errno or 0)
            return pycurl.SOCKET_BAD

    def _on_header(self, line: bytes) -> int | None:
        self.active = True
        self._count += 1
        self.received += len(line)
        if self._count > self._http.header_count or self.received > self._http.header_limit:
            self.past_limit = f"more than {self._http.header_count} header lines or {self._http.header_limit} bytes"
            return -1
        if self._ftp:
            return None
        if line[:5].upper() == b"HTTP/" and (not self.lines or self._ended):
            self.status_line = line
            self.lines.clear()  # what came before was an interim answer
            self._ended = False
        elif line in (b"\r\n", b"\n"):
            self._ended = True
        else:
            self.lines.append(line)
        return None

    def _on_body(self, data: bytes) -> int | None:
        self.active = True
        body = self.body
        if body is None:
            encoding = None
            if not self._ftp and any(line[:16].lower() == b"content-encoding" for line in self.lines):
                for name, value in header_fields(self.lines):
                    if name.lower() == "content-encoding":
                        encoding = value
            body = self.body = Body(encoding_of(encoding), self._limit)
        return None if body.feed(data) else -1

    def answer(self, code: int, message: str) -> Answer:
        """Return what the transfer came to; ``code`` and ``message`` are libcurl's, 0 for a good end."""
        answer = self._ftp_answer(code, message) if self._ftp else self._http_answer(code, message)
        if self._http.store_ip:
            answer.ip = self.curl.getinfo(pycurl.PRIMARY_IP) or ""
        return answer

    def _http_answer(self, code: int, message: str) -> Answer:
        status = int(self.curl.getinfo(pycurl.RESPONSE_CODE))
        body = self.body
        answer = Answer(self.url, status, self.lines, body.content() if body is not None else b"")
        answer.elapsed = int((time.monotonic() - self.started) * 1000)
        answer.request, answer.status_line = self.sent, self.status_line
        if body is not None and body.truncated:
            answer.truncated = "length"
            code = 0 if code == pycurl.E_WRITE_ERROR else code
        if status == 0 and code == 0:
            return self._headless(answer)
        if code == 0 and not self._ended:
            answer.failure = Failure(FailureKind.PROTOCOL, "connection closed amid the headers", Cause.BAD_HEAD)
        elif code != 0 and not self._forgiven(answer, code):
            answer.failure = self._failure(code, message)
        return answer

    def _ftp_answer(self, code: int, message: str) -> Answer:
        """Return what an FTP transfer came to, as a web server would say it; a folder becomes a page of links."""
        body = self.body
        answer = Answer(self.url, 200, [], body.content() if body is not None else b"")
        answer.elapsed = int((time.monotonic() - self.started) * 1000)
        if body is not None and body.truncated:
            answer.truncated, code = "length", 0
        if code in _FTP_STATUS:
            return Answer(self.url, _FTP_STATUS[code], elapsed=answer.elapsed)
        if code:
            answer.failure = self._failure(code, message)
        elif parse_url(self.url).file.endswith("/"):
            answer.lines.append(b"Content-Type: text/html; charset=utf-8")
            answer.content = ftp_listing(parse_url(self.url).file, answer.content, self._http.files.parent)
        else:
            modified = self.curl.getinfo(pycurl.INFO_FILETIME)
            if modified >= 0:
                answer.lines.append(f"Last-Modified: {format_http_date(modified * 1000)}".encode())
        return answer

    def _forgiven(self, answer: Answer, code: int) -> bool:
        """Tell whether a transfer that broke off in the body is an answer all the same."""
        if not self._ended or self.past_limit:
            return False
        if answer.status != 200:  # the body says nothing that the status does not
            answer.truncated = "disconnect"
            return True
        if code == pycurl.E_OPERATION_TIMEDOUT and not self.timed_out and answer.content:
            answer.truncated = "time"  # http.time.limit
            return True
        coding = answer.header("Transfer-Encoding") or ""
        if code == pycurl.E_PARTIAL_FILE and "chunked" not in coding.lower():
            answer.truncated = "disconnect"  # fewer bytes than Content-Length says, which Nutch accepts
            return True
        if self._http.keep_partial and answer.content:
            answer.truncated = "disconnect"
            return True
        return False

    def _headless(self, answer: Answer) -> Answer:
        """Judge an answer without a status line (HTTP/0.9, ``ICY 200 OK``, garbage)."""
        first = answer.content[:200].split(b"\n", 1)[0].rstrip(b"\r").decode("latin-1")
        if self._http.lenient:
            answer.status = 200
        else:
            answer.failure = Failure(FailureKind.PROTOCOL, f"bad status line {first[:80]!r}")
        return answer

    def _failure(self, code: int, message: str) -> Failure:
        if self.past_limit:
            return Failure(FailureKind.LIMIT, self.past_limit)
        if self._excluded:
            return Failure(FailureKind.GATE, str(AddressExcludedError(self._excluded)))
        if self.timed_out:
            return Failure(FailureKind.TIMEOUT, f"read timed out after {self._http.timeout:g} s")
        refused = code == pycurl.E_COULDNT_CONNECT and self.curl.getinfo(pycurl.OS_ERRNO) == errno.ECONNREFUSED
        if code in _WITHOUT_SOCKET and not refused and (lacks := self._lacking or lacking_now()):
            return Failure(FailureKind.SOCKET, lacks)
        if code == pycurl.E_COULDNT_CONNECT:
            return Failure(FailureKind.REFUSED if refused else FailureKind.CONNECT, message)
        text = message or f"curl error {code}"
        return Failure(KINDS.get(code, FailureKind.OTHER), text, cause_of(code, message))


class _OpenedSocket:
    """A socket for libcurl: pycurl duplicates the descriptor and lets go of this object, which closes its own."""

    __slots__ = ("_socket",)

    def __init__(self, address: Any) -> None:
        self._socket = socket.socket(address.family, address.socktype, address.protocol)

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


def _open_any_socket(_purpose: int, address: Any) -> _OpenedSocket:
    return _OpenedSocket(address)
