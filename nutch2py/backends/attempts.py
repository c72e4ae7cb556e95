"""Requests to a server that may be away for a while, or at one of several addresses; and its refusals."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from nutch2py.errors import IndexingError
from nutch2py.reporting import warn

T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 15.0
_SERVER_ERRORS = 3  # a fourth 500 in a row is taken for an objection to what was sent


class Refusal(Exception):
    """The server answered, and does not take what was sent: ``status`` is HTTP's, ``str(error)`` its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Attempts:
    """The addresses of one server, and requests to the one in use, which serves until it fails.

    A failure without a whole answer, and the answers 429, 500, 502, 503, 504 and those of ``stopping`` (after a first
    success), are tried again, at the next address when there are several, with waits that double from ``first_wait`` to
    15 s, until ``patience`` seconds have passed without success or 429 came more than ``overloads`` times; then
    :class:`IndexingError`. Other answers, the fourth 500 in a row and the first that says ``hopeless`` are a
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
        """The address in use."""
        return self.urls[self._at]

    def make(
        self,
        call: Callable[[int], T],
        failures: tuple[type[Exception], ...],
        reason: Callable[[Exception], tuple[int, str]],
    ) -> T:
        """Return what ``call`` returns, given the number of the address; see the class.

        ``failures``: what it raises when there is no success; ``reason`` makes of it HTTP's status, 0 when there was no
        whole answer, and what went wrong in one line.
        """
        began: float | None = None
        wait, tries, server_errors, overloads = self.first_wait, 0, 0, 0
        while True:
            try:
                result = call(self._at)
            except failures as error:
                status, message = reason(error)
            else:
                self._answered = True
                return result
            if status == 500:
                hopeless = bool(self.hopeless) and self.hopeless in message
                server_errors += _SERVER_ERRORS + 1 if hopeless else 1
            overloads += status == 429
            if status and not self._passing(status, server_errors):
                raise self.refusal(status, message)
            now = time.monotonic()
            if began is None:
                began = now
            if overloads > self.overloads:
                raise IndexingError(f"{self.server} at {self.url} is overloaded ({message}): run the job again later")
            if now - began >= self.patience:
                raise IndexingError(
                    f"{self.server} does not answer at {', '.join(self.urls)} ({message}): start it or correct "
                    f"{self.setting}, and run the job again"
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
