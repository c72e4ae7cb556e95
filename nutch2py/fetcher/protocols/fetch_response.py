"""What a request came to: an answer with its headers as they were sent, or a failure with its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto

_LINE_OVERHEAD = 41  # bytes of memory that a header line takes beside its own


class FailureKind(StrEnum):
    """Why there is no answer; the names of the fetcher's counters of exceptions."""

    DNS = "unknown_host"
    REFUSED = "connection_refused"
    CONNECT = "connection_failed"
    SOCKET = "no_socket"
    TIMEOUT = "timeout"
    CLOSED = "connection_closed"
    PROTOCOL = "malformed_answer"
    TLS = "tls"
    ADDRESS_FILTER = "address_excluded"
    LIMIT = "limit_exceeded"
    URL = "malformed_url"
    SCHEME = "unknown_protocol"
    ROBOTS = "robots_unreachable"
    BROWSER = "browser"
    OTHER = "other"


class RetryHint(Enum):
    """What of a failure says how another try can succeed."""

    NONE = auto()
    """Nothing does."""
    DEAD_CONNECTIONS = auto()
    """Several kept connections were dead, one after the other: a fresh one can do."""
    BAD_CONTENT_LENGTH = auto()
    """The Content-Length is no number: the answer can be read to its end without."""
    MALFORMED_HEADERS = auto()
    """The headers are malformed in a way that a forgiving reader can read over."""


@dataclass(slots=True)
class FetchFailure:
    """A request without an answer: its kind, a text for ``f:prot`` and the log, and what another try can do about it.

    Nothing is decided by the text.
    """

    kind: FailureKind
    message: str
    retry_hint: RetryHint = RetryHint.NONE


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """What a browser made of an answer, whose content is then the document as scripts left it.

    ``url``: where the page was in the end. ``limits_hit``: properties whose limit it met, so that there may be more to it.
    ``original_content``: the content as it was sent. ``redirect_url``: where a script led to, "" for nowhere. ``document_size``: bytes of the
    document before it was cut. ``screenshot``: a picture, where one is wanted.
    """

    url: str
    limits_hit: tuple[str, ...] = ()
    original_content: bytes = b""
    redirect_url: str = ""
    document_size: int = 0
    screenshot: bytes = b""


@dataclass(slots=True)
class FetchResponse:
    """The answer to one GET.

    ``header_lines``: the header lines as sent, without the status line. ``content``: the body, decoded from its transfer and
    content encodings and cut at the limit; ``truncated`` then says why (``length``, ``time``, ``disconnect``), else it
    is empty. ``ip``: the address that answered, when it is wanted. ``elapsed_ms``: milliseconds from the connection to
    the last byte. ``raw_request`` and ``status_line``: both as sent, where they are wanted (WARC). With ``failure`` set
    nothing else holds but ``ip``, of a connection that was made.
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
        """Return the answer as the server gave it, whatever a browser made of it."""
        return self if self.rendered is None else replace(self, content=self.rendered.original_content, rendered=None)

    @property
    def memory_size(self) -> int:
        """How many bytes of memory this takes, about: what was received, and what a browser made of it."""
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
    def retry_hint(self) -> RetryHint | None:
        """What of the failure says how another try can succeed; None when there is an answer."""
        return None if self.failure is None else self.failure.retry_hint

    def iter_headers(self) -> Iterator[tuple[str, str]]:
        """Give name and value of each header as Latin-1 text; a continued line belongs to the one before it."""
        return parse_header_lines(self.header_lines)

    def get_header(self, name: str) -> str | None:
        """Return the last value of a header, its name in any case, or None."""
        wanted, found = name.lower(), None
        for key, value in self.iter_headers():
            if key.lower() == wanted:
                found = value
        return found


def parse_header_lines(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Part header lines at the colon; lines without one are left out, folded lines are joined (RFC 9112, 5.2)."""
    name, parts = "", list[str]()
    lines = [*lines]
    if not any(line[:1] in (b" ", b"\t") for line in lines):  # almost always: nothing is folded
        for raw in lines:
            name, colon, rest = raw.rstrip(b"\r\n").decode("latin-1").partition(":")
            if colon and name:
                yield name, rest.lstrip(" \t")
        return
    for raw in lines:
        line = raw.rstrip(b"\r\n").decode("latin-1")
        if not line:
            continue
        if line[0] in " \t" and name:  # one blank of the fold is dropped, as Nutch does
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
