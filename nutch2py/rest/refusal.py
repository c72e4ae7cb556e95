"""Refusal: why a request is not done, with its status."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from nutch2py.disk import disk_trouble
from nutch2py.errors import NutchError
from nutch2py.reporting import warn


class Refusal(NutchError):
    """A request that is not done. ``status``: of the answer; ``headers``: more of them."""

    def __init__(self, status: HTTPStatus, told: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(told)
        self.status = status
        self.headers = dict(headers or {})


def not_found(what: str) -> Refusal:
    """Return the refusal of what is not there."""
    return Refusal(HTTPStatus.NOT_FOUND, f"there is no {what}")


def storage_refusal(error: OSError) -> Refusal:
    """Return the refusal of what the server's own disk or limits do not let it do; its owner is told more."""
    warn(f"rest.folder: {disk_trouble(error, 'the files of the server') or error}")
    told = f"the server cannot do this now: {error.strerror or type(error).__name__} (its own messages say where)"
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, told, {"Retry-After": "10"})
