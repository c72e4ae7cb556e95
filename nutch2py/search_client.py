"""SearchClient: Python client of a server's search API, ``/api/v1/search`` and ``/suggest``.

Example::

    client = SearchClient("http://127.0.0.1:8080")
    for hit in client.search("web crawler").hits:
        print(hit.title, hit.url)

Results have the types of :mod:`nutch2py.search.search_schemas`. The client needs msgspec, and only these types of
nutch2py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import msgspec

from nutch2py.errors import InputError, NutchError
from nutch2py.search.search_schemas import SearchHit, SearchResponse, SuggestResponse

T = TypeVar("T")

_ROWS_PER_REQUEST = 100
_API_KEY = re.compile(r"[!-~]+")


class SearchError(NutchError):
    """A failed search. ``status``: the HTTP status, 0 when the server does not respond.

    ``retry_after``: seconds after which to retry, if the server sends it.
    """

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class SearchClient:
    """Client of the server at ``address``; ``timeout`` in seconds. Several threads can use one client.

    ``api_key``: the key of the server's owner, if the server requires one. It is sent in a header only to that server,
    never in a URL, nor to the target of a redirect.
    """

    def __init__(self, address: str, timeout: float = 30.0, api_key: str = "") -> None:
        if api_key and not _API_KEY.fullmatch(api_key):
            raise InputError("the key for the search contains characters that are not allowed in a key")
        self.address, self.timeout, self._api_key = address.rstrip("/"), timeout, api_key
        self._opener = build_opener(ProxyHandler({}))

    def search(self, query: str, **options: Any) -> SearchResponse:
        """Return the results of a query; ``options`` are those of :class:`~nutch2py.search.search_schemas.SearchQuery`.

        ``facets`` and ``fields`` may be lists; an option that is None is not sent. Raise :class:`SearchError`.
        """
        given = {
            name: ",".join(value) if isinstance(value, (list, tuple)) else value
            for name, value in options.items()
            if value is not None
        }
        return self._request("search", {"q": query, **given}, SearchResponse)

    def suggest(self, prefix: str) -> SuggestResponse:
        """Return suggestions for the start of a query."""
        return self._request("suggest", {"q": prefix}, SuggestResponse)

    def _request(self, path: str, arguments: dict[str, Any], kind: type[T]) -> T:
        try:
            url = f"{self.address}/api/v1/{path}?{urlencode(arguments)}"
            if not url.lower().startswith(("http://", "https://")):  # urllib opens files, too
                raise ValueError("write http://HOST:PORT")
            request = Request(url)  # noqa: S310 - the scheme is checked
            if self._api_key:
                request.add_unredirected_header("Authorization", f"Bearer {self._api_key}")
            with self._opener.open(request, timeout=self.timeout) as response:
                return msgspec.json.decode(response.read(), type=kind)
        except HTTPError as error:
            raise _http_search_error(error) from error
        except msgspec.MsgspecError as error:
            raise SearchError(0, f"{self.address} sent a response that is not a search result: {error}") from error
        except (OSError, HTTPException, ValueError) as error:  # ValueError: of an invalid address
            why = error.reason if isinstance(error, URLError) else error
            raise SearchError(0, f"{self.address} does not respond: {why}") from error

    def iter_hits(self, query: str, **options: Any) -> Iterator[SearchHit]:
        """Yield all hits, best first, over all result pages."""
        cursor: str | None = "*"
        while cursor:
            page = self.search(query, **{"rows": _ROWS_PER_REQUEST, **options, "cursor": cursor})
            yield from page.hits
            cursor = page.cursor


class AsyncSearchClient:
    """The same client for asyncio: each request runs in a thread."""

    def __init__(self, address: str, timeout: float = 30.0, api_key: str = "") -> None:
        self._client = SearchClient(address, timeout, api_key)

    async def search(self, query: str, **options: Any) -> SearchResponse:
        """Return the results of a query."""
        return await asyncio.to_thread(self._client.search, query, **options)

    async def suggest(self, prefix: str) -> SuggestResponse:
        """Return suggestions for the start of a query."""
        return await asyncio.to_thread(self._client.suggest, prefix)

    async def iter_hits(self, query: str, **options: Any) -> AsyncIterator[SearchHit]:
        """Yield all hits, best first."""
        cursor: str | None = "*"
        while cursor:
            page = await self.search(query, **{"rows": _ROWS_PER_REQUEST, **options, "cursor": cursor})
            for hit in page.hits:
                yield hit
            cursor = page.cursor


def _http_search_error(error: HTTPError) -> SearchError:
    """Return the SearchError of an HTTP error response."""
    after, body = error.headers.get("Retry-After", ""), b""
    with error, suppress(OSError, HTTPException):
        body = error.read(100_000)
    return SearchError(
        error.code, _error_message(body) or str(error.reason), float(after) if after.isdecimal() else None
    )


def _error_message(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return ""
