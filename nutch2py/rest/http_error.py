"""HttpError: an HTTP error response with status, message and headers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus

from nutch2py.errors import NutchError
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.reporting import warn

_UNAVAILABLE_MESSAGE = "The search is unavailable now. Try again later."
_LOG_INTERVAL = 60.0  # seconds between two log lines about one error
_MAX_LOGGED_ERRORS = 256
logged_errors: dict[int, float] = {}
"""Times of the last log lines about errors, by a hash of their message or kind."""


class HttpError(NutchError):
    """A rejected or failed request. ``status``, ``headers``: of the response."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})

    def public_message(self) -> str:
        """Return the message: it is about the request."""
        return str(self)


def describe_publicly(error: NutchError) -> str:
    """Return the message of an error for people who search, without addresses, properties and advice for operators.

    The whole message goes to the server's own log, at most once a minute.
    """
    message, public_message = str(error), error.public_message()
    if message != public_message:
        _warn_at_intervals(f"request: {message}", hash(message))
    return public_message or _UNAVAILABLE_MESSAGE


def _warn_at_intervals(message: str, key: int) -> None:
    """Log a message, at most one with this key a minute: clients must not fill the log."""
    now = time.monotonic()
    if now - logged_errors.get(key, -_LOG_INTERVAL) >= _LOG_INTERVAL:
        if len(logged_errors) >= _MAX_LOGGED_ERRORS:
            logged_errors.clear()
        logged_errors[key] = now
        warn(message)


def not_found(resource: str) -> HttpError:
    """Return the error of a missing resource."""
    return HttpError(HTTPStatus.NOT_FOUND, f"{resource} not found")


def storage_error(error: OSError) -> HttpError:
    """Return the error of a failing disk or limit of the server.

    The details go only to the server's own log, at most once a minute for one kind of failure.
    """
    message = f"rest.folder: {disk_error_message(error, 'the files of the server') or error}"
    _warn_at_intervals(message, hash(("rest.folder", error.errno)))
    reason = error.strerror or type(error).__name__
    message = f"the server cannot do this now: {reason} (details are in the server's log)"
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, message, {"Retry-After": "10"})
