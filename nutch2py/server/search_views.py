"""Views of the search page: search, suggestions, JSON, explanation, cached copies, OpenSearch and static files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.conf.configuration import Configuration
from nutch2py.rest.access.rate_limiter import RateLimiter, rate_limit_key
from nutch2py.rest.http_error import HttpError
from nutch2py.search.query.query_hints import find_query_hints
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.response_limit import ResponseBudget, max_read_characters, response_byte_limit
from nutch2py.search.results.search_results import SearchResult, first_value
from nutch2py.search.search_backends import SearchBackend, SearcherManager, needs_correction
from nutch2py.search.search_log.logged_search import SearchSource
from nutch2py.search.search_log.search_logger import SearchLogger
from nutch2py.server.cached_page import SANDBOX_HEADERS, CachedPage, load_cached_page, query_terms, render_cached_page
from nutch2py.server.empty_result import find_related_searches
from nutch2py.server.score_explanation import explain_score
from nutch2py.server.search_request import SearchRequest, build_url
from nutch2py.server.search_templates import RESULTS_PER_PAGE, SearchTemplates, is_safe_link
from nutch2py.server.theme import Theme
from nutch2py.server.translations import Translations, negotiate_language
from nutch2py.support.thread_limit import ThreadLimit

_MAX_ROWS = 100
_MAX_THREADS = 32
"""Concurrent requests to the index and the table."""
_MAX_CACHED_THREADS = 2
"""Concurrent cached pages, so that large ones do not delay searches."""
_JAVASCRIPT_TYPE = "text/javascript; charset=utf-8"
_STATIC_FILES = {
    "/style.css": (["style.css"], "text/css; charset=utf-8"),
    "/icon.svg": (["icon.svg"], "image/svg+xml"),
    "/search.js": (["templates/suggestions.js", "templates/clicks.js", "templates/search.js"], _JAVASCRIPT_TYPE),
    "/box.js": (["templates/suggestions.js", "templates/box.js"], _JAVASCRIPT_TYPE),
}
_JSON_PATH = "/search.json"
JSON_PATHS = frozenset({_JSON_PATH, "/suggest"})
"""Paths whose responses, and errors, are JSON."""
_SESSION_HEADER = "x-search-session"
"""Header with the random session id of the page's script, on requests after the first results."""
_CACHE_HEADERS = {"Cache-Control": "max-age=60"}


class _SearchCall(NamedTuple):
    """A request with its translations, its header ``Origin`` and the base URL of this server.

    ``can_view_control_room`` returns whether the client may see the control room. ``session``: id of the page's session
    for the search log. ``is_loggable`` returns whether the search may be logged.
    """

    request: SearchRequest
    i18n: Translations
    origin: str
    base_url: str
    can_view_control_room: Callable[[], bool]
    session: str
    is_loggable: Callable[[], bool]


class SearchViews:
    """Views over one index and one table."""

    def __init__(
        self,
        conf: Configuration,
        searchers: Callable[[], SearcherManager],
        can_view_control_room: Callable[[Request], bool] = lambda _: False,
        authorize: Callable[[Request], object] = lambda _: None,
        search_logger: SearchLogger | None = None,
    ) -> None:
        """Create the views.

        Args:
            conf: the configuration of the crawl.
            searchers: returns the searchers of the index.
            can_view_control_room: returns whether the client of a request may see the control room.
            authorize: raises HttpError for a client that may not use ``/search.json``, or exceeds its rate limit.
            search_logger: logs searches, None for no log.
        """
        self._searchers, self._can_view_control_room, self._authorize = searchers, can_view_control_room, authorize
        self._search_logger = search_logger
        self._log_limiter = RateLimiter(conf.get_float("search.log.requests.per.second", 2.0))
        self.conf = conf
        self.theme = Theme.from_conf(conf)
        self.templates = SearchTemplates(self.theme)
        self._thread_limit, self._cached_thread_limit = ThreadLimit(_MAX_THREADS), ThreadLimit(_MAX_CACHED_THREADS)

    @property
    def searchers(self) -> SearcherManager:
        """The searchers of the index."""
        return self._searchers()

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        views: dict[str, Callable[[_SearchCall], Response]] = {
            "/": self._search_page,
            "/suggest": self._suggest,
            _JSON_PATH: self._search_json,
            "/explain": self._explain_page,
            "/cached": self._cached_page,
            "/cached/view": self._cached_view,
            "/opensearch.xml": self._opensearch_description,
        }
        limits = dict.fromkeys(("/cached", "/cached/view"), self._cached_thread_limit)
        routes: list[BaseRoute] = [
            Route(path, self._endpoint(view, limits.get(path, self._thread_limit))) for path, view in views.items()
        ]
        return [*routes, *(Route(path, self._static_file) for path in (*_STATIC_FILES, "/logo"))]

    def translations(self, request: Request) -> Translations:
        """Return the translations for the language of a request."""
        return Translations(self.theme.language or negotiate_language(request.headers.get("accept-language", "")))

    def message_page(self, request: Request, status: int, title: str, text: str = "", query: str = "") -> Response:
        """Return a page with a message. ``title``: a message key. ``text``: a message key or a sentence."""
        return self._message_page(self.translations(request), status, title, text, query)

    def _message_page(self, i18n: Translations, status: int, title: str, text: str, query: str = "") -> Response:
        message = i18n(text) if text.isidentifier() else text
        return _html_response(self.templates.render_message(i18n, i18n(title), message, query), status)

    def _endpoint(self, view: Callable[[_SearchCall], Response], limit: ThreadLimit) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            if request.url.path == _JSON_PATH:
                self._authorize(request)
            call = _SearchCall(
                SearchRequest.from_query_string(request.scope["query_string"]),
                self.translations(request),
                request.headers.get("origin", ""),
                self.theme.base_url or str(request.base_url).rstrip("/"),
                partial(self._can_view_control_room, request),
                request.headers.get(_SESSION_HEADER, ""),
                partial(self._is_loggable, request.client.host if request.client else ""),
            )
            return await limit.run(view, call)

        return endpoint

    def _is_loggable(self, address: str) -> bool:
        """Count a search of an address; return False over the rate limit. The address is not stored."""
        try:
            self._log_limiter.check(("address", rate_limit_key(address)))
        except HttpError:
            return False
        return True

    def _log_search(self, call: _SearchCall, result: SearchResult, source: SearchSource) -> str:
        """Log the shown results; return their token, "" when they were not logged."""
        if self._search_logger is None or not call.is_loggable():
            return ""
        ids = [hit.id for hit in result.hits]
        return self._search_logger.log_search(call.request.query, result.total, result.start, ids, source, call.session)

    def _search_page(self, call: _SearchCall) -> Response:
        request, i18n = call.request, call.i18n
        query, filters, start = request.query, request.filters, request.start
        options = SearchOptions.from_filters(filters, newest_first=bool(request.sort))
        options = options._replace(max_characters=max_read_characters(0, RESULTS_PER_PAGE))
        is_partial = bool(request.arguments.get("partial"))
        hints, has_control_room = self._query_hints(i18n, query), call.can_view_control_room()
        with self.searchers.acquire() as index:
            if not query:
                return _html_response(self.templates.render_home(i18n, index.count()))
            result = index.search(query, start, RESULTS_PER_PAGE, options, with_facets=not is_partial)
            suggestion = ""
            if is_partial:
                # The last word is unfinished: its completions mean more than similar words.
                is_unknown = not result.total or result.corrected_query
                if is_unknown and (queries := index.suggest(query).queries):
                    result = index.search(queries[0], start, RESULTS_PER_PAGE, options)
            elif not result.corrected_query and needs_correction(result) and not start:
                suggestion = index.correct_query(query)
            related = None if is_partial or result.total else find_related_searches(index, request, i18n)
        if is_partial:  # while the user types: only hits, also for completions of the last word
            return _html_response(
                self.templates.render_results(i18n, request, result, {}, hints=hints, has_control_room=has_control_room)
            )
        facets = result.facets if result.total else {name: [(value, 0)] for name, value in filters.items()}
        suggestion = suggestion if suggestion != query else ""
        return _html_response(
            self.templates.render_results(
                i18n,
                request,
                result,
                facets,
                suggestion,
                hints,
                is_sortable=True,
                has_control_room=has_control_room,
                related=related,
                result_token=self._log_search(call, result, "page"),
            )
        )

    def _query_hints(self, i18n: Translations, query: str) -> tuple[str, ...]:
        hints, instead = find_query_hints(query)
        messages = [i18n(f"wrong_{hint.problem}", hint.fragment) for hint in hints]
        return (*messages, i18n("searched", instead)) if instead and instead != query else tuple(messages)

    def _suggest(self, call: _SearchCall) -> Response:
        """Return OpenSearch suggestions: query, completions, descriptions and URLs."""
        import orjson

        with self.searchers.acquire() as index:
            suggestions = index.suggest(call.request.query or "")
        rows = [(query, "", call.base_url + build_url("/", q=query)) for query in suggestions.queries]
        rows += [(title, call.i18n("title"), url) for title, url in suggestions.pages if is_safe_link(url)]
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

        request = call.request
        request.check_values()
        query, filters = request.query, request.filters
        rows = min(request.get_number("rows", RESULTS_PER_PAGE), _MAX_ROWS)
        limit = response_byte_limit(self.conf)
        options = SearchOptions.from_filters(filters, newest_first=bool(request.sort))
        options = options._replace(max_characters=max_read_characters(limit, rows))
        with self.searchers.acquire() as index:
            result = index.search(query, request.start, rows, options, with_facets=True)
        self._log_search(call, result, "api")
        facets = {name: dict(values) for name, values in result.facets.items()}
        answer = {**result.to_dict(), "filters": filters, "facets": facets}
        budget = ResponseBudget(limit, len(answer["hits"]), options.max_characters)
        budget.spend({**answer, "hits": []})
        for hit in answer["hits"]:
            fields = hit.pop("fields")
            hit["fields"], cut = budget.cut_fields(fields, hit)
            if cut:
                hit["cut_fields"] = cut
        if budget.is_cut:
            answer["is_cut"] = True
        body = orjson.dumps(answer)
        return Response(body, headers={"Content-Type": "application/json"})

    def _explain_page(self, call: _SearchCall) -> Response:
        i18n, query, key = call.i18n, call.request.query, call.request.key
        with self.searchers.acquire() as index:
            explanation = index.explain(query, key)
            url = _document_url(index, key)
        if explanation is None:
            return self._message_page(i18n, HTTPStatus.NOT_FOUND, "no_such", "not_by_query", query)
        sentences = explain_score(i18n, query, explanation)
        values = {"url": url, "query": query, "sentences": sentences, "explanation": explanation}
        return _html_response(self.templates.render("explain.html", i18n, **values))

    def _cached_page(self, call: _SearchCall) -> Response:
        i18n, query, key = call.i18n, call.request.query, call.request.key
        page, url = self._load_cached_page(key)
        if page.unavailable_reason:
            return self._message_page(i18n, HTTPStatus.NOT_FOUND, "no_cached", page.unavailable_reason, query)
        terms = [*itertools.islice(query_terms(query), 20)]
        values = {
            "url": url,
            "key": key,
            "query": query,
            "fetch_time": page.fetch_time,
            "terms": terms,
        }
        return _html_response(self.templates.render("cached.html", i18n, **values))

    def _cached_view(self, call: _SearchCall) -> Response:
        page, _ = self._load_cached_page(call.request.key)
        if page.unavailable_reason:
            return PlainTextResponse(page.unavailable_reason, HTTPStatus.NOT_FOUND, SANDBOX_HEADERS)
        content_type, text = render_cached_page(page, call.request.query)
        headers = {**SANDBOX_HEADERS, "Content-Type": f"{content_type}; charset=utf-8"}
        return Response(text.encode("utf-8", "replace"), headers=headers)

    def _load_cached_page(self, key: str) -> tuple[CachedPage, str]:
        """Return the copy of a page and its URL; a page that the index does not have has no copy."""
        with self.searchers.acquire() as index:
            document = index.get_document(key) if key else None
        if document is None:
            return CachedPage("", "", "The index has no such page."), ""
        return load_cached_page(self.conf, key), first_value(document, "url") or key

    def _opensearch_description(self, call: _SearchCall) -> Response:
        """Return the OpenSearch 1.1 description document."""
        base, name = call.base_url, self.theme.name
        url_templates = {"text/html": "/?q={searchTerms}", "application/x-suggestions+json": "/suggest?q={searchTerms}"}
        urls = "".join(
            f"<Url type={quoteattr(kind)} template={quoteattr(base + path)}/>" for kind, path in url_templates.items()
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

    def _static_file(self, request: Request) -> Response:
        path = request.url.path
        if path == "/logo":
            if self.theme.logo is None:
                return self.message_page(request, HTTPStatus.NOT_FOUND, "no_such", "no_page")
            return Response(
                self.theme.logo.read_bytes(), headers={"Content-Type": self.theme.logo_media_type, **_CACHE_HEADERS}
            )
        names, media_type = _STATIC_FILES[path]
        data = b"".join(files("nutch2py.server").joinpath(name).read_bytes() for name in names)
        if media_type == _JAVASCRIPT_TYPE:  # one scope, which adds no global name
            data = b'(() => {\n"use strict";\n' + data + b"})();\n"
        headers = {"Content-Type": media_type, **_CACHE_HEADERS}
        if path == "/style.css":
            data += self.theme.css().encode()
        elif path == "/box.js":
            if not self.theme.origins.origins:  # no other site may embed it
                return self.message_page(request, HTTPStatus.NOT_FOUND, "no_such", "no_page")
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return Response(data, headers=headers)


def _document_url(index: SearchBackend, key: str) -> str:
    return first_value(index.get_document(key) or {}, "url") or key


def _html_response(body: str, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(body.encode("utf-8", "replace"), status, {"Vary": "Accept-Language, Authorization"})
