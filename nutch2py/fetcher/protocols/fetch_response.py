"""Result of a request: a response with its header lines as sent, or a failure with its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto

_LINE_OVERHEAD = 41  # memory overhead of a header line in bytes


class FailureOrigin(StrEnum):
    """Party that caused a failure, which decides what the failure means for the page."""

    PAGE = "page"
    """The page or its URL: it counts as a failed fetch."""
    SERVER = "server"
    """The server or its domain: it counts as a failed fetch, and delays the server's queue."""
    LOCAL = "local"
    """This machine, its network or its configuration: says nothing about the page, which stays as it is and due."""


class FailureKind(StrEnum):
    """Reason of a failed request; the values are names of the fetcher's exception counters."""

    DNS = "unknown_host"
    DNS_UNAVAILABLE = "dns_unavailable"
    NETWORK = "network_unreachable"
    PROXY = "proxy_failed"
    REFUSED = "connection_refused"
    CONNECT = "connection_failed"
    SOCKET = "no_socket"
    TIMEOUT = "timeout"
    CLOSED = "connection_closed"
    PROTOCOL = "malformed_answer"
    TLS = "tls"
    TLS_SETUP = "tls_setup"
    ADDRESS_FILTER = "address_excluded"
    LIMIT = "limit_exceeded"
    URL = "malformed_url"
    SCHEME = "unknown_protocol"
    PROTOCOL_DISABLED = "protocol_disabled"
    ROBOTS = "robots_unreachable"
    BROWSER = "browser"
    DISK = "disk"
    OTHER = "other"

    @property
    def origin(self) -> FailureOrigin:
        """Party that caused failures of this kind."""
        return _ORIGINS.get(self, FailureOrigin.SERVER)


_ORIGINS = {
    FailureKind.LIMIT: FailureOrigin.PAGE,
    FailureKind.URL: FailureOrigin.PAGE,
    FailureKind.SCHEME: FailureOrigin.PAGE,
    FailureKind.ROBOTS: FailureOrigin.PAGE,
    FailureKind.BROWSER: FailureOrigin.PAGE,
    FailureKind.ADDRESS_FILTER: FailureOrigin.LOCAL,
    FailureKind.DNS_UNAVAILABLE: FailureOrigin.LOCAL,
    FailureKind.NETWORK: FailureOrigin.LOCAL,
    FailureKind.PROXY: FailureOrigin.LOCAL,
    FailureKind.SOCKET: FailureOrigin.LOCAL,
    FailureKind.TLS_SETUP: FailureOrigin.LOCAL,
    FailureKind.PROTOCOL_DISABLED: FailureOrigin.LOCAL,
    FailureKind.DISK: FailureOrigin.LOCAL,
}
"""Origin by kind; SERVER for all others."""
LOCAL_KINDS = frozenset(kind for kind in FailureKind if kind.origin is FailureOrigin.LOCAL)
"""Failures of this machine, its network or its configuration."""


class RetryHint(Enum):
    """Another way of sending the request that may succeed."""

    NONE = auto()
    """No other way."""
    DEAD_CONNECTIONS = auto()
    """Several reused connections were dead in a row: use a fresh one."""
    BAD_CONTENT_LENGTH = auto()
    """Content-Length is no number: ignore it and read until the connection closes."""
    MALFORMED_HEADERS = auto()
    """The headers are malformed in a way that a lenient parser can read."""
    CLOSED_BY_PROXY = auto()
    """The proxy closed the connection without a response: repeat the request if it still responds for other URLs."""


@dataclass(slots=True)
class FetchFailure:
    """A failed request: its kind, a message for ``f:prot`` and the log, and a retry hint.

    No decision depends on the message.
    """

    kind: FailureKind
    message: str
    retry_hint: RetryHint = RetryHint.NONE

    @property
    def is_local(self) -> bool:
        """Whether this machine, its network or its configuration caused the failure."""
        return self.kind in LOCAL_KINDS


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """Results of rendering a response; its content is then the rendered document.

    Attributes:
        url: Final URL of the page.
        limits_hit: Properties of the limits that were reached, so that content may be missing.
        original_content: Content as sent by the server.
        redirect_url: Target of a redirect by script, "" for none.
        document_size: Size of the document in bytes before truncation.
        screenshot: Image of the page, if configured.
    """

    url: str
    limits_hit: tuple[str, ...] = ()
    original_content: bytes = b""
    redirect_url: str = ""
    document_size: int = 0
    screenshot: bytes = b""


@dataclass(slots=True)
class FetchResponse:
    """The response to one request.

    Attributes:
        url: URL of the request.
        status: HTTP status code.
        header_lines: Header lines as sent, without the status line.
        content: Body, decoded from transfer and content encodings and truncated at the limit.
        truncated: Reason of truncation (``length``, ``time``, ``disconnect``), or "".
        ip: Address of the server, if configured; also set on failures after a connection.
        elapsed_ms: Milliseconds from the connection to the last byte.
        raw_request: Request as sent, if configured (WARC).
        status_line: Status line as sent, if configured (WARC).
        failure: The failure; all fields but ``url`` and ``ip`` are then meaningless.
        rendered: Results of rendering.
    """

    url: str
    status: int = 0
    header_lines: list[bytes] = field(default_factory=list)
    content: bytes = b""
    truncated: str = ""
    ip: str = ""
    elapsed_ms: int = 0
    raw_request: bytes = b""
    status_line: bytes = b""
    failure: FetchFailure | None = None
    rendered: RenderedPage | None = None

    def as_received(self) -> FetchResponse:
        """Return the response as sent by the server, without the results of rendering."""
        return self if self.rendered is None else replace(self, content=self.rendered.original_content, rendered=None)

    @property
    def memory_size(self) -> int:
        """Approximate memory in bytes: received data and results of rendering."""
        size = (
            len(self.content)
            + len(self.raw_request)
            + sum(map(len, self.header_lines))
            + _LINE_OVERHEAD * len(self.header_lines)
        )
        if self.rendered is not None:
            size += len(self.rendered.original_content) + len(self.rendered.screenshot)
        return size

    @property
    def is_local_failure(self) -> bool:
        """Whether the request failed for a reason of this machine; see :attr:`FetchFailure.is_local`."""
        return self.failure is not None and self.failure.is_local

    @property
    def retry_hint(self) -> RetryHint | None:
        """Retry hint of the failure; None for a successful request."""
        return None if self.failure is None else self.failure.retry_hint

    def iter_headers(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of each header as Latin-1 text; folded lines are joined."""
        return parse_header_lines(self.header_lines)

    def get_header(self, name: str) -> str | None:
        """Return the last value of a header by case-insensitive name, or None."""
        lower_name, last_value = name.lower(), None
        for key, value in self.iter_headers():
            if key.lower() == lower_name:
                last_value = value
        return last_value


def parse_header_lines(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Split header lines at the colon; lines without one are skipped, folded lines are joined (RFC 9112, 5.2)."""
    name, parts = "", list[str]()
    lines = [*lines]
    if not any(line[:1] in (b" ", b"\t") for line in lines):  # the common case: no folded lines
        for raw in lines:
            name, colon, rest = raw.rstrip(b"\r\n").decode("latin-1").partition(":")
            if colon and name:
                yield name, rest.lstrip(" \t")
        return
    for raw in lines:
        line = raw.rstrip(b"\r\n").decode("latin-1")
        if not line:
            continue
        if line[0] in " \t" and name:  # drop one blank of the fold, as Nutch does
            parts.append(line[1:])
            continue
        if name:
            yield name, "".join(parts)
        name, colon, rest = line.partition(":")
        parts = [rest.lstrip(" \t")]
        if not colon:
            name = ""
    if name:
        yield name, "".join(parts)
