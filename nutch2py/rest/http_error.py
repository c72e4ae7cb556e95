"""HttpError: an HTTP error response with status, message and headers."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from nutch2py.errors import NutchError
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.reporting import warn


class HttpError(NutchError):
    """A rejected or failed request. ``status``, ``headers``: of the response."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def not_found(resource: str) -> HttpError:
    """Return the error of a missing resource."""
    return HttpError(HTTPStatus.NOT_FOUND, f"{resource} not found")


def storage_error(error: OSError) -> HttpError:
    """Return the error of a failing disk or limit of the server. The details go only to the server's own log."""
    warn(f"rest.folder: {disk_error_message(error, 'the files of the server') or error}")
    reason = error.strerror or type(error).__name__
    message = f"the server cannot do this now: {reason} (details are in the server's log)"
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, message, {"Retry-After": "10"})
