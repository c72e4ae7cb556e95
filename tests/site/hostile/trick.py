"""A trick: its description, its response, and the expected status of its row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from inspect import isgenerator
from typing import Any, NamedTuple

Sent = Iterable[bytes | float]
"""Behaviour of a server: bytes are sent, a number is a pause in seconds; at the end the connection is closed."""


class Request(NamedTuple):
    """A request as a trick sees it. ``path`` with its query; ``site``: scheme, address and port of the server."""

    path: str
    site: str
    host: str
    port: int


Answer = Callable[[Request], Sent]


class Trick(NamedTuple):
    """One way to attack a crawler.

    ``fetched``: allowed names of the row's protocol status, separated by ``|``; "" for a row that stays due.
    ``parsed``: allowed results of the parse, likewise: ``success``, ``redirect``, ``failed``; "" for none. ``robots``:
    the response of its robots.txt, None for 404. ``sitemap``: injected as a sitemap. ``make``: work done at the first
    request.
    """

    name: str
    what: str
    answer: Answer
    fetched: str
    parsed: str = ""
    robots: Answer | None = None
    scheme: str = "http"
    sitemap: bool = False
    path: str = ""
    make: Callable[[], bytes] | None = None

    @property
    def first(self) -> str:
        """The seed path."""
        return self.path or f"/{self.name}"


class Tricks:
    """The tricks of a module, in their order."""

    def __init__(self) -> None:
        self._found: list[Trick] = []

    def __iter__(self) -> Iterator[Trick]:
        return iter(self._found)

    def add(self, name: str, what: str, answer: Answer | Sent, fetched: str, parsed: str = "", **more: Any) -> None:
        """Add a trick; an ``answer`` that is no function is the same for every request."""
        made: Answer = answer if callable(answer) else _same(answer)
        self._found.append(Trick(name, what, made, fetched, parsed, **more))

    def trick(self, what: str, fetched: str, parsed: str = "", **more: Any) -> Callable[[Answer], Answer]:
        """Add the decorated function as the response of the trick with its name."""

        def adding(answer: Answer) -> Answer:
            name = answer.__name__.strip("_").replace("_", "-")  # type: ignore[attr-defined]
            self.add(name, what, answer, fetched, parsed, **more)
            return answer

        return adding

    def document(
        self,
        name: str,
        what: str,
        make: Callable[[], bytes | str],
        content_type: str = "text/html",
        parsed: str = "success|failed",
    ) -> None:
        """Add a page with a correct transfer; ``make`` returns its body and is called once."""

        def made() -> bytes:
            body = make()
            return body.encode() if isinstance(body, str) else body

        kept = cache(made)
        self.add(name, what, serving(kept, content_type), "SUCCESS", parsed, make=kept)


def _same(sent: Sent) -> Answer:
    kept = tuple(sent) if isgenerator(sent) else sent
    return lambda _: kept


def head(content_type: str = "text/html", *lines: str | bytes, status: str = "200 OK") -> bytes:
    """Return a status line and headers with the blank line."""
    own = [line.encode() if isinstance(line, str) else line for line in lines]
    return b"\r\n".join([f"HTTP/1.1 {status}".encode(), f"Content-Type: {content_type}".encode(), *own, b"", b""])


def page(body: bytes, content_type: str = "text/html", *lines: str | bytes, status: str = "200 OK") -> Iterator[bytes]:
    """Return an honest response around a body."""
    yield head(content_type, f"Content-Length: {len(body)}", *lines, status=status)
    yield body


def serving(make: Callable[[], bytes], content_type: str = "text/html", *lines: str | bytes) -> Answer:
    """Return a response with a body that is built on request."""
    return lambda _: page(make(), content_type, *lines)
