"""The search page: ``/``, ``/suggest``, ``/search.json``, ``/explain``, ``/cached``, ``/opensearch.xml``, its files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property, partial
from http import HTTPStatus
from importlib.resources import files
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.conf import Configuration
from nutch2py.rest.threads import Threads
from nutch2py.search.plan import Narrowed
from nutch2py.search.query_hints import hints
from nutch2py.search.results import first_of
from nutch2py.search.search_backends import FEW, Backend, backend
from nutch2py.server.asked import Asked, link
from nutch2py.server.cached import HEADERS as SANDBOX
from nutch2py.server.cached import cached_page, words_of
from nutch2py.server.look import Look
from nutch2py.server.pages import ROWS, Pages, opens
from nutch2py.server.reasons import reasons
from nutch2py.server.wording import Wording, language_of

_MAX_ROWS = 100
_THREADS = 32
"""Requests to the index and the table at one time."""
_SCRIPT = "text/javascript; charset=utf-8"
_FILES = {
    "/style.css": (["style.css"], "text/css; charset=utf-8"),
    "/icon.svg": (["icon.svg"], "image/svg+xml"),
    "/search.js": (["templates/suggestions.js", "templates/search.js"], _SCRIPT),
    "/box.js": (["templates/suggestions.js", "templates/box.js"], _SCRIPT),
}
_JSON = "/search.json"
_FRESH = {"Cache-Control": "max-age=60"}


class _Call(NamedTuple):
    """A request: its arguments, the words of its page, the site that it comes from, the address of ours.

    ``operates`` tells whether who asks may look into the control room.
    """

    asked: Asked
    words: Wording
    origin: str
    address: str
    operates: Callable[[], bool]


class SearchPages:
    """Answers from one index and one table. ``may_look``: whether who asks may look into the control room.

    ``admit``: raises a refusal for a program that may not search, or asks too often.
    """

    def __init__(
        self,
        conf: Configuration,
        may_look: Callable[[Request], bool] = lambda _: False,
        admit: Callable[[Request], object] = lambda _: None,
    ) -> None:
        self._may_look, self._admit = may_look, admit
        self.conf = conf
        self.look = Look.of(conf)
        self.pages = Pages(self.look)
        self._threads = Threads(_THREADS)
        self._any_word = conf.get_trimmed("index.search.operator", "and").lower() == "or"

    @cached_property
    def backend(self) -> Backend:
        """The index."""
        return backend(self.conf)

    def routes(self) -> list[BaseRoute]:
        """Return the paths."""
        answers: dict[str, Callable[[_Call], Response]] = {
            "/": self._results,
            "/suggest": self._suggest,
            _JSON: self._json,
            "/explain": self._explain,
            "/cached": self._cached,
            "/cached/view": self._view,
            "/opensearch.xml": self._description,
        }
        found: list[BaseRoute] = [Route(path, self._endpoint(answer)) for path, answer in answers.items()]
        return [*found, *(Route(path, self._file) for path in (*_FILES, "/logo"))]

    def words(self, request: Request) -> Wording:
        """Return the words of the page for who asks."""
        return Wording(self.look.language or language_of(request.headers.get("accept-language", "")))

    def said(self, request: Request, status: int, title: str, text: str = "", query: str = "") -> Response:
        """Return a page that says one thing. ``title``: the name of words; ``text`` too, unless it is a sentence."""
        return self._said(self.words(request), status, title, text, query)

    def _said(self, words: Wording, status: int, title: str, text: str, query: str = "") -> Response:
        said = words(text) if text.isidentifier() else text
        return _page(self.pages.message(words, words(title), said, query), status)

    def _endpoint(self, answer: Callable[[_Call], Response]) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            if request.url.path == _JSON:
                self._admit(request)
            asked = Asked.of(request.scope["query_string"])
            address = self.look.address or str(request.base_url).rstrip("/")
            origin = request.headers.get("origin", "")
            call = _Call(asked, self.words(request), origin, address, partial(self._may_look, request))
            return await self._threads.run(answer, call)

        return endpoint

    def _results(self, call: _Call) -> Response:
        asked, words = call.asked, call.words
        query, filters, start = asked.query, asked.filters, asked.start
        index = self.backend
        if not query:
            return _page(self.pages.home(words, index.count()))
        if asked.sort:
            result, _ = index.walk(query, Narrowed.to(filters, newest=True), start, ROWS)
        else:
            result = index.search(query, filters, start, ROWS)
        told, room = self._hints(words, query), call.operates()
        if asked.arguments.get("part"):  # while somebody types: the hits alone, of what the last word may become
            if not result.total and (queries := index.suggest(query).queries):
                result = index.search(queries[0], filters, start, ROWS)
            return _page(self.pages.results(words, asked, result, {}, hints=told, room=room))
        facets = (
            index.facets(query, filters) if result.total else {name: [(value, 0)] for name, value in filters.items()}
        )
        meant = index.corrected(query) if result.total < FEW and not start else ""
        meant = meant if meant != query else ""
        return _page(self.pages.results(words, asked, result, facets, meant, told, sorts=True, room=room))

    def _hints(self, words: Wording, query: str) -> tuple[str, ...]:
        found, instead = hints(query, self._any_word)
        told = [words(f"wrong_{hint.wrong}", hint.part) for hint in found]
        return (*told, words("searched", instead)) if instead and instead != query else tuple(told)

    def _suggest(self, call: _Call) -> Response:
        """Answer as browsers have it: what was typed, completions, their descriptions, their addresses."""
        import orjson

        found = self.backend.suggest(call.asked.query or "")
        rows = [(query, "", call.address + link("/", q=query)) for query in found.queries]
        rows += [(title, call.words("title"), url) for title, url in found.pages if opens(url)]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        headers = {"Content-Type": "application/x-suggestions+json", "Vary": "Origin, Accept-Language", **_FRESH}
        if allowed := self.look.origins.allowed(call.origin):
            headers |= {"Access-Control-Allow-Origin": allowed, "Cross-Origin-Resource-Policy": "cross-origin"}
        return Response(orjson.dumps([call.asked.query, *columns]), headers=headers)

    def _json(self, call: _Call) -> Response:
        import orjson

        query, filters, rows = call.asked.query, call.asked.filters, min(call.asked.number("rows", ROWS), _MAX_ROWS)
        result = self.backend.search(query, filters, call.asked.start, rows)
        facets = {name: dict(values) for name, values in self.backend.facets(query, filters).items()}
        body = orjson.dumps({**result.to_dict(), "filters": filters, "facets": facets})
        return Response(body, headers={"Content-Type": "application/json"})

    def _explain(self, call: _Call) -> Response:
        words, query, key = call.words, call.asked.query, call.asked.key
        told = self.backend.explain(query, key)
        if told is None:
            return self._said(words, HTTPStatus.NOT_FOUND, "no_such", "not_by_query", query)
        sentences = reasons(words, query, told)
        values = {"url": self._url_of(key), "query": query, "sentences": sentences, "numbers": told}
        return _page(self.pages.render("explain.html", words, **values))

    def _cached(self, call: _Call) -> Response:
        words, query, key = call.words, call.asked.query, call.asked.key
        found = cached_page(self.conf, key)
        if found.refusal:
            return self._said(words, HTTPStatus.NOT_FOUND, "no_cached", found.refusal, query)
        marked = [*itertools.islice(words_of(query), 20)]
        values = {"url": self._url_of(key), "key": key, "query": query, "fetched": found.fetched, "marked": marked}
        return _page(self.pages.render("cached.html", words, **values))

    def _view(self, call: _Call) -> Response:
        page = cached_page(self.conf, call.asked.key, call.asked.query)
        if page.refusal:
            return PlainTextResponse(page.refusal, HTTPStatus.NOT_FOUND, SANDBOX)
        headers = {**SANDBOX, "Content-Type": f"{page.content_type}; charset=utf-8"}
        return Response(page.text.encode("utf-8", "replace"), headers=headers)

    def _description(self, call: _Call) -> Response:
        """Return what tells a browser how to search here (OpenSearch 1.1)."""
        base, name = call.address, self.look.name
        kinds = {"text/html": "/?q={searchTerms}", "application/x-suggestions+json": "/suggest?q={searchTerms}"}
        urls = "".join(
            f"<Url type={quoteattr(kind)} template={quoteattr(base + path)}/>" for kind, path in kinds.items()
        )
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
            f"<ShortName>{escape(name[:16])}</ShortName><LongName>{escape(name[:48])}</LongName>"
            f"<Description>{escape(call.words('search'))}: {escape(name[:1000])}</Description>"
            f'<Image width="64" height="64" type="image/svg+xml">{escape(base)}/icon.svg</Image>{urls}'
            "<InputEncoding>UTF-8</InputEncoding><OutputEncoding>UTF-8</OutputEncoding></OpenSearchDescription>\n"
        )
        return Response(body, headers={"Content-Type": "application/opensearchdescription+xml"})

    def _url_of(self, key: str) -> str:
        return first_of(self.backend.get(key) or {}, "url") or key

    def _file(self, request: Request) -> Response:
        path = request.url.path
        if path == "/logo":
            if self.look.logo is None:
                return self.said(request, HTTPStatus.NOT_FOUND, "no_such", "no_page")
            return Response(self.look.logo.read_bytes(), headers={"Content-Type": self.look.logo_kind, **_FRESH})
        names, kind = _FILES[path]
        data = b"".join(files("nutch2py.server").joinpath(name).read_bytes() for name in names)
        if kind == _SCRIPT:  # each is one request, and puts no name into the page
            data = b'(() => {\n"use strict";\n' + data + b"})();\n"
        headers = {"Content-Type": kind, **_FRESH}
        if path == "/style.css":
            data += self.look.style().encode()
        elif path == "/box.js":
            if not self.look.origins.sites:  # no other site may show it
                return self.said(request, HTTPStatus.NOT_FOUND, "no_such", "no_page")
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return Response(data, headers=headers)


def _page(body: str, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(body.encode("utf-8", "replace"), status, {"Vary": "Accept-Language, Authorization"})
