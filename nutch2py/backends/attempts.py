"""Requests to a server that may be away for a while, or at one of several addresses; and its refusals."""

from __future__ import annotations

import math
import random
import socket
import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from nutch2py.errors import IndexingError, causes_of
from nutch2py.reporting import warn
from nutch2py.secrets import shown_address

T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 15.0
_SERVER_ERRORS = 3  # a fourth 500 in a row is taken for an objection to what was sent


class Trouble(NamedTuple):
    """Why a request has no success.

    ``status``: HTTP's, 0 when there was no whole answer. ``message``: what went wrong in one line, for people.
    ``kinds``: the server's own names for it (types of errors, classes of exceptions), which decide.
    """

    status: int
    message: str
    kinds: frozenset[str] = frozenset()


class Refusal(Exception):
    """The server answered, and does not take what was sent; see :class:`Trouble`. ``str(error)``: its own words."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.status, self.kinds = trouble.status, trouble.kinds


def connection_trouble(error: BaseException) -> str:
    """Say in a few words what kept a connection from being made or from giving an answer, "" when that is unknown."""
    import requests
    from urllib3.exceptions import ReadTimeoutError

    for cause in causes_of(error):
        if isinstance(cause, (requests.Timeout, ReadTimeoutError, TimeoutError)):
            return "timed out"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, socket.gaierror):
            return "no such host"
    return ""


class Attempts:
    """The addresses of one server, and requests to the one in use, which serves until it fails.

    A failure without a whole answer, and the answers 429, 500, 502, 503, 504 and those of ``stopping`` (after a first
    success), are tried again, at the next address when there are several, with waits that double from ``first_wait`` to
    15 s, until ``patience`` seconds have passed without success or 429 came more than ``overloads`` times; then
    :class:`IndexingError`. Other answers, the fourth 500 in a row and the first of the kind ``hopeless`` are a
    :class:`Refusal`.

    ``server`` and ``setting``: its name and the property of its address, for messages.
    """

    def __init__(
        self,
        urls: Sequence[str],
        server: str,
        setting: str,
        patience: float,
        *,
        first_wait: float = _FIRST_WAIT,
        overloads: float = math.inf,
        stopping: Collection[int] = (),
        hopeless: str = "",
        refusal: type[Refusal] = Refusal,
    ) -> None:
        self.urls, self.server, self.setting, self.patience = [*urls], server, setting, patience
        self.first_wait, self.overloads, self.stopping, self.refusal = first_wait, overloads, stopping, refusal
        self.hopeless = hopeless
        self._at = 0
        self._answered = False

    @property
    def url(self) -> str:
        """The address in use, as messages may show it."""
        return shown_address(self.urls[self._at])

    def make(
        self,
        call: Callable[[int], T],
        failures: tuple[type[Exception], ...],
        reason: Callable[[Exception], Trouble],
    ) -> T:
        """Return what ``call`` returns, given the number of the address; see the class.

        ``failures``: what it raises when there is no success; ``reason`` says what that means.
        """
        began: float | None = None
        wait, tries, server_errors, overloads = self.first_wait, 0, 0, 0
        while True:
            try:
                result = call(self._at)
            except failures as error:
                trouble = reason(error)
                status, message = trouble.status, shown_address(trouble.message)
            else:
                self._answered = True
                return result
            if status == 500:
                server_errors += _SERVER_ERRORS + 1 if self.hopeless in trouble.kinds else 1
            overloads += status == 429
            if status and not self._passing(status, server_errors):
                raise self.refusal(trouble)
            now = time.monotonic()
            if began is None:
                began = now
            if overloads > self.overloads:
                raise IndexingError(f"{self.server} at {self.url} is overloaded ({message}): run the job again later")
            if now - began >= self.patience:
                urls = ", ".join(map(shown_address, self.urls))
                raise IndexingError(
                    f"{self.server} does not answer at {urls} ({message}): start it or correct {self.setting}, and run "
                    "the job again"
                )
            tries += 1
            self._at = (self._at + 1) % len(self.urls)
            if tries % len(self.urls) == 0:
                if wait == self.first_wait:
                    warn(f"{self.server} does not answer at {self.url} ({message}): trying for {self.patience:g} s")
                time.sleep(min(wait * (0.75 + random.random() / 2), max(0.0, began + self.patience - now)))
                wait = min(wait * 2, _LONGEST_WAIT)

    def _passing(self, status: int, server_errors: int) -> bool:
        """Tell whether a failure may pass."""
        return (
            status in (429, 502, 503, 504)
            or (status == 500 and server_errors <= _SERVER_ERRORS)
            or (status in self.stopping and self._answered)
        )
