"""How a page is answered: its template, its headers, and what is said when it is not."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import HTMLResponse, Response

from nutch2py.rest.refusal import Refusal
from nutch2py.room.templates import render

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
"""Sent with every page: one script of ours, nothing from anywhere else."""
_TABS = (
    ("", "Crawl"),
    ("/jobs", "Jobs"),
    ("/rounds", "Rounds"),
    ("/hosts", "Hosts"),
    ("/page", "Page"),
    ("/doctor", "Doctor"),
)
_WITHIN = {"/job": "/jobs", "/host": "/hosts", "/new": ""}


class Look(NamedTuple):
    """A page: its template, its title, and what is put into it."""

    template: str
    title: str
    values: dict[str, Any]


def answer(path: str, seen: Look, status: int = HTTPStatus.OK, may_run: bool = True) -> Response:
    """Return a page; ``may_run``: who looks may begin and stop jobs."""
    here = path.removeprefix("/crawl")
    values = {"title": seen.title, "tabs": _TABS, "here": _WITHIN.get(here, here), "may_run": may_run, **seen.values}
    return HTMLResponse(render(seen.template, **values).encode("utf-8", "replace"), status, HEADERS)


def refused(path: str, error: Refusal) -> Response:
    """Return the page that says why a request is not done."""
    title = "Not there" if error.status == HTTPStatus.NOT_FOUND else "Not allowed"
    made = answer(path, Look("message.html", title, {"text": str(error)}), error.status)
    made.headers.update(error.headers)
    return made
