"""RetryingClient: requests to a server with retries, several addresses and classified failures."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import IndexingError, iter_causes
from nutch2py.support.retry import ServiceRetry

T = TypeVar("T")

DEFAULT_RESPONSE_BYTES = 128 << 20
"""Default of ``index.response.max.bytes``."""
_MAX_SERVER_ERRORS = 3  # a fourth 500 in a row is a rejection of the request


def max_response_bytes(conf: Configuration) -> int:
    """Return ``index.response.max.bytes``."""
    return conf.get_int("index.response.max.bytes", DEFAULT_RESPONSE_BYTES)


class RequestFailure(NamedTuple):
    """Cause of a failed request.

    Attributes:
        status: HTTP status, 0 without a complete response.
        message: One line for people.
        error_types: The server's types of the error (names of errors or exception classes), which decide on retries.

    """

    status: int
    message: str
    error_types: frozenset[str] = frozenset()


class RequestRejectedError(Exception):
    """The server rejected a request; see :class:`RequestFailure`. ``str(error)`` is the server's message."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.message)
        self.status, self.error_types = failure.status, failure.error_types


def describe_connection_error(error: BaseException) -> str:
    """Return a short cause of a failed connection, "" when it is unknown."""
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
    """The addresses of one server; requests go to the current one until it fails.

    A request without a complete response is retried, and so are the statuses 429, 500, 502, 503, 504 and, after a first
    success, ``retried_statuses``. With several addresses the next one is used. Delays are those of
    :class:`nutch2py.support.retry.ServiceRetry`. After ``max_retry_seconds`` without success, or more than
    ``max_overloads`` responses of 429, :class:`IndexingError` is raised. Any other status, the fourth 500 in a row and
    an error of one of the ``fatal_error_types``, which a retry cannot help, raise :class:`RequestRejectedError`.

    ``server_name`` and ``property_name``: the server's name and the property of its address, for messages.
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
        fatal_error_types: frozenset[str] = frozenset(),
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
        self.fatal_error_types = fatal_error_types
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
        """Return the result of ``send``, which is called with the index of the address; see the class.

        Args:
            send: Makes one request.
            exceptions: The exceptions that ``send`` raises on failure.
            to_failure: Returns the meaning of such an exception.

        """
        retry = ServiceRetry(
            f"{self.server_name} at {self._redacted_urls}", self.max_retry_seconds, self.property_name, self.first_delay
        )
        tries, server_errors, overloads = 0, 0, 0
        while True:
            try:
                with retry.attempt():
                    result = send(self._url_index)
            except exceptions as error:
                failure = to_failure(error)
                status, message = failure.status, redact_address(failure.message)
            else:
                self._has_responded = True
                return result
            server_errors += status == 500
            overloads += status == 429
            is_fatal = not self.fatal_error_types.isdisjoint(failure.error_types)
            if status and (is_fatal or not self._is_transient(status, server_errors)):
                retry.succeeded()
                raise self.rejection_class(failure)
            tries += 1
            if overloads > self.max_overloads:
                raise IndexingError(
                    f"{self.server_name} at {self.url} is overloaded ({message}): run the job again later"
                )
            if not retry.wait_before_retry(message, immediately=tries % len(self.urls) != 0):
                raise IndexingError(
                    f"{self.server_name} does not respond at {self._redacted_urls} ({message}): start "
                    f"it or correct {self.property_name}, and run the job again"
                )
            self._url_index = (self._url_index + 1) % len(self.urls)

    def _is_transient(self, status: int, server_errors: int) -> bool:
        """Return whether a failure may be temporary."""
        return (
            status in (429, 502, 503, 504)
            or (status == 500 and server_errors <= _MAX_SERVER_ERRORS)
            or (status in self.retried_statuses and self._has_responded)
        )
