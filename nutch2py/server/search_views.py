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

from nutch2py.conf.configuration import Configuration
from nutch2py.rest.dispatch.thread_limit import ThreadLimit
from nutch2py.search.query.query_hints import find_query_hints
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.search_results import first_value
from nutch2py.search.search_backends import FEW_HITS, SearchBackend, open_search_backend
from nutch2py.server.cached_page import SANDBOX_HEADERS as SANDBOX
from nutch2py.server.cached_page import load_cached_page, query_terms
from nutch2py.server.score_explanation import explain_score
from nutch2py.server.search_request import SearchRequest, build_url
from nutch2py.server.search_templates import RESULTS_PER_PAGE, SearchTemplates, is_safe_link
from nutch2py.server.theme import Theme
from nutch2py.server.translations import Translations, negotiate_language

_MAX_ROWS = 100
_MAX_THREADS = 32
"""Requests to the index and the table at one time."""
_JAVASCRIPT_TYPE = "text/javascript; charset=utf-8"
_STATIC_FILES = {
    "/style.css": (["style.css"], "text/css; charset=utf-8"),
    "/icon.svg": (["icon.svg"], "image/svg+xml"),
    "/search.js": (["templates/suggestions.js", "templates/search.js"], _JAVASCRIPT_TYPE),
    "/box.js": (["templates/suggestions.js", "templates/box.js"], _JAVASCRIPT_TYPE),
}
_JSON_PATH = "/search.json"
_CACHE_HEADERS = {"Cache-Control": "max-age=60"}


class _SearchCall(NamedTuple):
    """A request: its arguments, the words of its page, the site that it comes from, the address of ours.

    ``can_view_control_room`` tells whether who asks may look into the control room.
    """

    request: SearchRequest
    i18n: Translations
    origin: str
    base_url: str
    can_view_control_room: Callable[[], bool]


class SearchViews:
    """Answers from one index and one table. ``may_look``: whether who asks may look into the control room.

    ``admit``: raises a refusal for a program that may not search, or asks too often.
    """

    def __init__(
        self,
        conf: Configuration,
        can_view_control_room: Callable[[Request], bool] = lambda _: False,
        authorize: Callable[[Request], object] = lambda _: None,
    ) -> None:
        self._can_view_control_room, self._authorize = can_view_control_room, authorize
        self.conf = conf
        self.theme = Theme.from_conf(conf)
        self.templates = SearchTemplates(self.theme)
        self._thread_limit = ThreadLimit(_MAX_THREADS)
        self._matches_any_word = conf.get_trimmed("index.search.operator", "and").lower() == "or"

    @cached_property
    def backend(self) -> SearchBackend:
        """The index."""
        return open_search_backend(self.conf)

    def routes(self) -> list[BaseRoute]:
        """Return the paths."""
        answers: dict[str, Callable[[_SearchCall], Response]] = {
            "/": self._search_page,
            "/suggest": self._suggest,
            _JSON_PATH: self._search_json,
            "/explain": self._explain_page,
            "/cached": self._cached_page,
            "/cached/view": self._cached_view,
            "/opensearch.xml": self._opensearch_description,
        }
        found: list[BaseRoute] = [Route(path, self._endpoint(answer)) for path, answer in answers.items()]
        return [*found, *(Route(path, self._static_file) for path in (*_STATIC_FILES, "/logo"))]

    def translations(self, request: Request) -> Translations:
        """Return the words of the page for who asks."""
        return Translations(self.theme.language or negotiate_language(request.headers.get("accept-language", "")))

    def message_page(self, request: Request, status: int, title: str, text: str = "", query: str = "") -> Response:
        """Return a page that says one thing. ``title``: the name of words; ``text`` too, unless it is a sentence."""
        return self._message_page(self.translations(request), status, title, text, query)

    def _message_page(self, words: Translations, status: int, title: str, text: str, query: str = "") -> Response:
        said = words(text) if text.isidentifier() else text
        return _html_response(self.templates.render_message(words, words(title), said, query), status)

    def _endpoint(self, answer: Callable[[_SearchCall], Response]) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            if request.url.path == _JSON_PATH:
                self._authorize(request)
            asked = SearchRequest.from_query_string(request.scope["query_string"])
            address = self.theme.base_url or str(request.base_url).rstrip("/")
            origin = request.headers.get("origin", "")
            call = _SearchCall(
                asked, self.translations(request), origin, address, partial(self._can_view_control_room, request)
            )
            return await self._thread_limit.run(answer, call)

        return endpoint

    def _search_page(self, call: _SearchCall) -> Response:
        asked, words = call.request, call.i18n
        query, filters, start = asked.query, asked.filters, asked.start
        index = self.backend
        if not query:
            return _html_response(self.templates.render_home(words, index.count()))
        if asked.sort:
            result, _ = index.search_with_cursor(
                query, SearchOptions.from_filters(filters, newest_first=True), start, RESULTS_PER_PAGE
            )
        else:
            result = index.search(query, filters, start, RESULTS_PER_PAGE)
        told, room = self._query_hints(words, query), call.can_view_control_room()
        if asked.arguments.get("part"):  # while somebody types: the hits alone, of what the last word may become
            if not result.total and (queries := index.suggest(query).queries):
                result = index.search(queries[0], filters, start, RESULTS_PER_PAGE)
            return _html_response(
                self.templates.render_results(words, asked, result, {}, hints=told, has_control_room=room)
            )
        facets = (
            index.facets(query, filters) if result.total else {name: [(value, 0)] for name, value in filters.items()}
        )
        meant = index.correct_query(query) if result.total < FEW_HITS and not start else ""
        meant = meant if meant != query else ""
        return _html_response(
            self.templates.render_results(
                words, asked, result, facets, meant, told, is_sortable=True, has_control_room=room
            )
        )

    def _query_hints(self, words: Translations, query: str) -> tuple[str, ...]:
        found, instead = find_query_hints(query, self._matches_any_word)
        told = [words(f"wrong_{hint.problem}", hint.fragment) for hint in found]
        return (*told, words("searched", instead)) if instead and instead != query else tuple(told)

    def _suggest(self, call: _SearchCall) -> Response:
        """Answer as browsers have it: what was typed, completions, their descriptions, their addresses."""
        import orjson

        found = self.backend.suggest(call.request.query or "")
        rows = [(query, "", call.base_url + build_url("/", q=query)) for query in found.queries]
        rows += [(title, call.i18n("title"), url) for title, url in found.pages if is_safe_link(url)]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        headers = {
            "Content-Type": "application/x-suggestions+json",
            "Vary": "Origin, Accept-Language",
            **_CACHE_HEADERS,
        }
        if allowed := self.theme.origins.allow_origin(call.origin):
            headers |= {"Access-Control-Allow-Origin": allowed, "Cross-Origin-Resource-Policy": "cross-origin"}
        return Response(orjson.dumps([call.request.query, *columns]), headers=headers)

    def _search_json(self, call: _SearchCall) -> Response:
        import orjson

        query, filters, rows = (
            call.request.query,
            call.request.filters,
            min(call.request.get_number("rows", RESULTS_PER_PAGE), _MAX_ROWS),
        )
        result = self.backend.search(query, filters, call.request.start, rows)
        facets = {name: dict(values) for name, values in self.backend.facets(query, filters).items()}
        body = orjson.dumps({**result.to_dict(), "filters": filters, "facets": facets})
        return Response(body, headers={"Content-Type": "application/json"})

    def _explain_page(self, call: _SearchCall) -> Response:
        words, query, key = call.i18n, call.request.query, call.request.key
        told = self.backend.explain(query, key)
        if told is None:
            return self._message_page(words, HTTPStatus.NOT_FOUND, "no_such", "not_by_query", query)
        sentences = explain_score(words, query, told)
        values = {"url": self._document_url(key), "query": query, "sentences": sentences, "numbers": told}
        return _html_response(self.templates.render("explain.html", words, **values))

    def _cached_page(self, call: _SearchCall) -> Response:
        words, query, key = call.i18n, call.request.query, call.request.key
        found = load_cached_page(self.conf, key)
        if found.unavailable_reason:
            return self._message_page(words, HTTPStatus.NOT_FOUND, "no_cached", found.unavailable_reason, query)
        marked = [*itertools.islice(query_terms(query), 20)]
        values = {
            "url": self._document_url(key),
            "key": key,
            "query": query,
            "fetched": found.fetch_time,
            "marked": marked,
        }
        return _html_response(self.templates.render("cached.html", words, **values))

    def _cached_view(self, call: _SearchCall) -> Response:
        page = load_cached_page(self.conf, call.request.key, call.request.query)
        if page.unavailable_reason:
            return PlainTextResponse(page.unavailable_reason, HTTPStatus.NOT_FOUND, SANDBOX)
        headers = {**SANDBOX, "Content-Type": f"{page.content_type}; charset=utf-8"}
        return Response(page.text.encode("utf-8", "replace"), headers=headers)

    def _opensearch_description(self, call: _SearchCall) -> Response:
        """Return what tells a browser how to search here (OpenSearch 1.1)."""
        base, name = call.base_url, self.theme.name
        kinds = {"text/html": "/?q={searchTerms}", "application/x-suggestions+json": "/suggest?q={searchTerms}"}
        urls = "".join(
            f"<Url type={quoteattr(kind)} template={quoteattr(base + path)}/>" for kind, path in kinds.items()
        )
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
            f"<ShortName>{escape(name[:16])}</ShortName><LongName>{escape(name[:48])}</LongName>"
            f"<Description>{escape(call.i18n('search'))}: {escape(name[:1000])}</Description>"
            f'<Image width="64" height="64" type="image/svg+xml">{escape(base)}/icon.svg</Image>{urls}'
            "<InputEncoding>UTF-8</InputEncoding><OutputEncoding>UTF-8</OutputEncoding></OpenSearchDescription>\n"
        )
        return Response(body, headers={"Content-Type": "application/opensearchdescription+xml"})

    def _document_url(self, key: str) -> str:
        return first_value(self.backend.get_document(key) or {}, "url") or key

    def _static_file(self, request: Request) -> Response:
        path = request.url.path
        if path == "/logo":
            if self.theme.logo is None:
                return self.message_page(request, HTTPStatus.NOT_FOUND, "no_such", "no_page")
            return Response(
                self.theme.logo.read_bytes(), headers={"Content-Type": self.theme.logo_media_type, **_CACHE_HEADERS}
            )
        names, kind = _STATIC_FILES[path]
        data = b"".join(files("nutch2py.server").joinpath(name).read_bytes() for name in names)
        if kind == _JAVASCRIPT_TYPE:  # each is one request, and puts no name into the page
            data = b'(() => {\n"use strict";\n' + data + b"})();\n"
        headers = {"Content-Type": kind, **_CACHE_HEADERS}
        if path == "/style.css":
            data += self.theme.css().encode()
        elif path == "/box.js":
            if not self.theme.origins.origins:  # no other site may show it
                return self.message_page(request, HTTPStatus.NOT_FOUND, "no_such", "no_page")
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return Response(data, headers=headers)


def _html_response(body: str, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(body.encode("utf-8", "replace"), status, {"Vary": "Accept-Language, Authorization"})
