"""Requests to a server that may be away for a while, or at one of several addresses; and its refusals."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from nutch2py.conf.redaction import redact_address
from nutch2py.errors import IndexingError, iter_causes
from nutch2py.support.retry import ServiceRetry

T = TypeVar("T")

_MAX_SERVER_ERRORS = 3  # a fourth 500 in a row is taken for an objection to what was sent


class RequestFailure(NamedTuple):
    """Why a request has no success.

    ``status``: HTTP's, 0 when there was no whole answer. ``message``: what went wrong in one line, for people.
    ``error_types``: the server's own names for it (types of errors, classes of exceptions), which decide.
    """

    status: int
    message: str
    error_types: frozenset[str] = frozenset()


class RequestRejectedError(Exception):
    """The server answered, and does not take what was sent; see :class:`RequestFailure`. ``str(error)``: its own words."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.message)
        self.status, self.error_types = failure.status, failure.error_types


def describe_connection_error(error: BaseException) -> str:
    """Say in a few words what kept a connection from being made or from giving an answer, "" when that is unknown."""
    import requests
    from urllib3.exceptions import ReadTimeoutError

    for cause in iter_causes(error):
        if isinstance(cause, (requests.Timeout, ReadTimeoutError, TimeoutError)):
            return "timed out"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, socket.gaierror):
            return "no such host"
    return ""


class RetryingClient:
    """The addresses of one server, and requests to the one in use, which serves until it fails.

    A failure without a whole answer, and the answers 429, 500, 502, 503, 504 and those of ``retried_statuses`` (after a first
    success), are tried again, at the next address when there are several, as :class:`nutch2py.support.retry.ServiceRetry` waits,
    until ``max_retry_seconds`` seconds have passed without success or 429 came more than ``max_overloads`` times; then
    :class:`IndexingError`. Other answers, the fourth 500 in a row and the first of the kind ``fatal_error_type`` are a
    :class:`RequestRejectedError`.

    ``server_name`` and ``property_name``: its name and the property of its address, for messages.
    """

    def __init__(
        self,
        urls: Sequence[str],
        server_name: str,
        property_name: str,
        max_retry_seconds: float,
        *,
        first_delay: float = 0.25,
        max_overloads: float = math.inf,
        retried_statuses: Collection[int] = (),
        fatal_error_type: str = "",
        rejection_class: type[RequestRejectedError] = RequestRejectedError,
    ) -> None:
        self.urls, self.server_name, self.property_name, self.max_retry_seconds = (
            [*urls],
            server_name,
            property_name,
            max_retry_seconds,
        )
        self.first_delay, self.max_overloads, self.retried_statuses, self.rejection_class = (
            first_delay,
            max_overloads,
            retried_statuses,
            rejection_class,
        )
        self.fatal_error_type = fatal_error_type
        self._url_index = 0
        self._has_responded = False

    @property
    def url(self) -> str:
        """The address in use, as messages may show it."""
        return redact_address(self.urls[self._url_index])

    @property
    def _redacted_urls(self) -> str:
        return ", ".join(map(redact_address, self.urls))

    def call(
        self,
        send: Callable[[int], T],
        exceptions: tuple[type[Exception], ...],
        to_failure: Callable[[Exception], RequestFailure],
    ) -> T:
        """Return what ``send`` returns, given the number of the address; see the class.

        ``exceptions``: what it raises when there is no success; ``to_failure`` says what that means.
        """
        outage = ServiceRetry(
            f"{self.server_name} at {self._redacted_urls}", self.max_retry_seconds, self.property_name, self.first_delay
        )
        tries, server_errors, overloads = 0, 0, 0
        while True:
            try:
                with outage.attempt():
                    result = send(self._url_index)
            except exceptions as error:
                trouble = to_failure(error)
                status, message = trouble.status, redact_address(trouble.message)
            else:
                self._has_responded = True
                return result
            if status == 500:
                server_errors += _MAX_SERVER_ERRORS + 1 if self.fatal_error_type in trouble.error_types else 1
            overloads += status == 429
            if status and not self._is_transient(status, server_errors):
                outage.succeeded()
                raise self.rejection_class(trouble)
            tries += 1
            if overloads > self.max_overloads:
                raise IndexingError(
                    f"{self.server_name} at {self.url} is overloaded ({message}): run the job again later"
                )
            if not outage.wait_before_retry(message, immediately=tries % len(self.urls) != 0):
                raise IndexingError(
                    f"{self.server_name} does not answer at {self._redacted_urls} ({message}): start "
                    f"it or correct {self.property_name}, and run the job again"
                )
            self._url_index = (self._url_index + 1) % len(self.urls)

    def _is_transient(self, status: int, server_errors: int) -> bool:
        """Tell whether a failure may pass."""
        return (
            status in (429, 502, 503, 504)
            or (status == 500 and server_errors <= _MAX_SERVER_ERRORS)
            or (status in self.retried_statuses and self._has_responded)
        )
