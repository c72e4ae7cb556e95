"""Refusal: why a request is not done, with its status."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from nutch2py.errors import NutchError


class Refusal(NutchError):
    """A request that is not done. ``status``: of the answer; ``headers``: more of them."""

    def __init__(self, status: HTTPStatus, told: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(told)
        self.status = status
        self.headers = dict(headers or {})


def not_found(what: str) -> Refusal:
    """Return the refusal of what is not there."""
    return Refusal(HTTPStatus.NOT_FOUND, f"there is no {what}")
