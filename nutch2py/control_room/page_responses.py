"""HTTP responses of the control room: rendered pages, headers and error pages."""

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
"""Headers of every page: only the own script and style sheet load."""
_TABS = (
    ("", "Crawl"),
    ("/activity", "Activity"),
    ("/jobs", "Jobs"),
    ("/rounds", "Rounds"),
    ("/hosts", "Hosts"),
    ("/page", "Page"),
    ("/search-quality", "Search quality"),
    ("/doctor", "Doctor"),
)
_PARENT_TABS = {"/job": "/jobs", "/host": "/hosts", "/new": ""}


class TemplatePage(NamedTuple):
    """A page: template name, title and template context."""

    template: str
    title: str
    context: dict[str, Any]


def render_page(
    path: str, page: TemplatePage, status: int = HTTPStatus.OK, can_run: bool = True, form_token: str = ""
) -> Response:
    """Return a page. ``can_run``: the caller may start and stop jobs, with ``form_token``."""
    subpath = path.removeprefix("/crawl")
    values = {
        "title": page.title,
        "tabs": _TABS,
        "current_tab": _PARENT_TABS.get(subpath, subpath),
        "can_run": can_run,
        "form_token": form_token,
        **page.context,
    }
    return HTMLResponse(render_template(page.template, **values).encode("utf-8", "replace"), status, PAGE_HEADERS)


def render_error_page(path: str, error: HttpError) -> Response:
    """Return the page of a rejected request."""
    titles = {HTTPStatus.NOT_FOUND: "Not found", HTTPStatus.SERVICE_UNAVAILABLE: "Unavailable"}
    title = titles.get(error.status, "Forbidden")
    response = render_page(path, TemplatePage("message.html", title, {"message": str(error)}), error.status)
    response.headers.update(error.headers)
    return response
