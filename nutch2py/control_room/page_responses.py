"""How a page is answered: its template, its headers, and what is said when it is not."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import HTMLResponse, Response

from nutch2py.control_room.templates import render_template
from nutch2py.rest.http_error import HttpError

PAGE_HEADERS = {
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
_PARENT_TABS = {"/job": "/jobs", "/host": "/hosts", "/new": ""}


class TemplatePage(NamedTuple):
    """A page: its template, its title, and what is put into it."""

    template: str
    title: str
    context: dict[str, Any]


def render_page(path: str, page: TemplatePage, status: int = HTTPStatus.OK, can_run: bool = True) -> Response:
    """Return a page; ``can_run``: who looks may begin and stop jobs."""
    here = path.removeprefix("/crawl")
    values = {
        "title": page.title,
        "tabs": _TABS,
        "here": _PARENT_TABS.get(here, here),
        "may_run": can_run,
        **page.context,
    }
    return HTMLResponse(render_template(page.template, **values).encode("utf-8", "replace"), status, PAGE_HEADERS)


def render_error_page(path: str, error: HttpError) -> Response:
    """Return the page that says why a request is not done."""
    title = "Not there" if error.status == HTTPStatus.NOT_FOUND else "Not allowed"
    made = render_page(path, TemplatePage("message.html", title, {"text": str(error)}), error.status)
    made.headers.update(error.headers)
    return made
