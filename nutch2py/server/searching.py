"""The search page: ``/``, ``/search.json``, ``/explain``, ``/cached``, ``/cached/view``, and two files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.rest.threads import Threads
from nutch2py.search.search_backends import FACETS, Backend, backend
from nutch2py.server import pages
from nutch2py.server.cached import HEADERS as SANDBOX
from nutch2py.server.cached import cached_page

_MAX_ROWS = 100
_MAX_ARGUMENTS = 50
_FEW = 3
"""Fewer hits than that, and another spelling is offered."""
_THREADS = 32
"""Requests to the index and the table at one time."""
_FILES = {"/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml"}


class _Asked(NamedTuple):
    """The arguments of a request."""

    arguments: dict[str, str]

    @property
    def query(self) -> str:
        return self.arguments.get("q", "")

    @property
    def key(self) -> str:
        return self.arguments.get("id", "")

    @property
    def filters(self) -> dict[str, str]:
        return {name: self.arguments[name][:300] for name in FACETS if self.arguments.get(name)}

    def number(self, name: str, default: int) -> int:
        text = self.arguments.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else default


def _asked(request: Request) -> _Asked:
    try:
        found = parse_qs(request.scope["query_string"].decode("ascii"), max_num_fields=_MAX_ARGUMENTS)
    except ValueError:
        raise InputError("The address of this page is not one of ours.") from None
    asked = _Asked({name: values[0] for name, values in found.items()})
    if len(asked.query) > pages.MAX_QUERY:
        raise InputError(f"A query has at most {pages.MAX_QUERY:,} characters.")
    return asked


class SearchPages:
    """Answers from one index and one table."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self._threads = Threads(_THREADS)

    @cached_property
    def backend(self) -> Backend:
        """The index."""
        return backend(self.conf)

    def routes(self) -> list[BaseRoute]:
        """Return the paths."""
        answers: dict[str, Callable[[_Asked], Response]] = {
            "/": self._results,
            "/search.json": self._json,
            "/explain": self._explain,
            "/cached": self._cached,
            "/cached/view": self._view,
        }
        found: list[BaseRoute] = [Route(path, self._endpoint(answer)) for path, answer in answers.items()]
        return [*found, *(Route(path, _file) for path in _FILES)]

    def _endpoint(self, answer: Callable[[_Asked], Response]) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            return await self._threads.run(answer, _asked(request))

        return endpoint

    def _results(self, asked: _Asked) -> Response:
        query, filters, start = asked.query.strip(), asked.filters, asked.number("start", 0)
        index = self.backend
        if not query:
            return _page(pages.home(index.count()))
        result = index.search(query, filters, start, pages.ROWS)
        facets = (
            index.facets(query, filters) if result.total else {name: [(value, 0)] for name, value in filters.items()}
        )
        meant = index.corrected(query) if result.total < _FEW and not start else ""
        return _page(pages.results(result, facets, filters, meant if meant != query else ""))

    def _json(self, asked: _Asked) -> Response:
        import orjson

        query, filters, rows = asked.query.strip(), asked.filters, min(asked.number("rows", pages.ROWS), _MAX_ROWS)
        result = self.backend.search(query, filters, asked.number("start", 0), rows)
        facets = {name: dict(values) for name, values in self.backend.facets(query, filters).items()}
        body = orjson.dumps({**result.to_dict(), "filters": filters, "facets": facets})
        return Response(body, headers={"Content-Type": "application/json"})

    def _explain(self, asked: _Asked) -> Response:
        told = self.backend.explain(asked.query, asked.key)
        if told is None:
            return said(HTTPStatus.NOT_FOUND, "Not found", "The query does not find this document.", asked.query)
        return _page(pages.explanation(self._url_of(asked.key), asked.query, told))

    def _cached(self, asked: _Asked) -> Response:
        refusal = cached_page(self.conf, asked.key).refusal
        if refusal:
            return said(HTTPStatus.NOT_FOUND, "No cached page", refusal, asked.query)
        return _page(pages.cached_frame(self._url_of(asked.key), asked.key, asked.query))

    def _view(self, asked: _Asked) -> Response:
        page = cached_page(self.conf, asked.key)
        if page.refusal:
            return PlainTextResponse(page.refusal, HTTPStatus.NOT_FOUND, SANDBOX)
        headers = {**SANDBOX, "Content-Type": f"{page.content_type}; charset=utf-8"}
        return Response(page.text.encode("utf-8", "replace"), headers=headers)

    def _url_of(self, key: str) -> str:
        fields = self.backend.get(key) or {}
        url = fields.get("url", key)
        return str(url[0] if isinstance(url, list) and url else url)


def _file(request: Request) -> Response:
    path = request.url.path
    data = Path(__file__).with_name(path[1:]).read_bytes()
    return Response(data, headers={"Content-Type": _FILES[path]})


def _page(body: str, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(body.encode("utf-8", "replace"), status)


def said(status: int, title: str, text: str, query: str = "") -> Response:
    """Return a page that says one thing."""
    return _page(pages.message(title, text, query), status)
