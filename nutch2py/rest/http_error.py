"""Refusal: why a request is not done, with its status."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from nutch2py.errors import NutchError
from nutch2py.support.atomic_files import disk_error_message
from nutch2py.support.reporting import warn


class HttpError(NutchError):
    """A request that is not done. ``status``: of the answer; ``headers``: more of them."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def not_found(resource: str) -> HttpError:
    """Return the refusal of what is not there."""
    return HttpError(HTTPStatus.NOT_FOUND, f"there is no {resource}")


def storage_error(error: OSError) -> HttpError:
    """Return the refusal of what the server's own disk or limits do not let it do; its owner is told more."""
    warn(f"rest.folder: {disk_error_message(error, 'the files of the server') or error}")
    told = f"the server cannot do this now: {error.strerror or type(error).__name__} (its own messages say where)"
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, told, {"Retry-After": "10"})
