"""Requests to a server that may be away for a while, or at one of several addresses; and its refusals."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from nutch2py.errors import IndexingError, causes_of
from nutch2py.outages import Outage
from nutch2py.secrets import shown_address

T = TypeVar("T")

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
    success), are tried again, at the next address when there are several, as :class:`nutch2py.outages.Outage` waits,
    until ``patience`` seconds have passed without success or 429 came more than ``overloads`` times; then
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
        first_wait: float = 0.25,
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

    @property
    def _shown(self) -> str:
        return ", ".join(map(shown_address, self.urls))

    def make(
        self,
        call: Callable[[int], T],
        failures: tuple[type[Exception], ...],
        reason: Callable[[Exception], Trouble],
    ) -> T:
        """Return what ``call`` returns, given the number of the address; see the class.

        ``failures``: what it raises when there is no success; ``reason`` says what that means.
        """
        outage = Outage(f"{self.server} at {self._shown}", self.patience, self.setting, self.first_wait)
        tries, server_errors, overloads = 0, 0, 0
        while True:
            try:
                with outage.asking():
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
                outage.over()
                raise self.refusal(trouble)
            tries += 1
            if overloads > self.overloads:
                raise IndexingError(f"{self.server} at {self.url} is overloaded ({message}): run the job again later")
            if not outage.failed(message, at_once=tries % len(self.urls) != 0):
                raise IndexingError(
                    f"{self.server} does not answer at {self._shown} ({message}): start "
                    f"it or correct {self.setting}, and run the job again"
                )
            self._at = (self._at + 1) % len(self.urls)

    def _passing(self, status: int, server_errors: int) -> bool:
        """Tell whether a failure may pass."""
        return (
            status in (429, 502, 503, 504)
            or (status == 500 and server_errors <= _SERVER_ERRORS)
            or (status in self.stopping and self._answered)
        )
