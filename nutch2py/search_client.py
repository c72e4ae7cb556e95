"""SearchClient: asks the interface for applications of a server, ``/api/v1/search`` and ``/suggest``, from Python.

    client = SearchClient("http://127.0.0.1:8080")
    for hit in client.search("web crawler").hits:
        print(hit.title, hit.url)

Answers are of the types of :mod:`nutch2py.search.search_schemas`. It needs msgspec and nothing else of nutch2py.
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
    """A search that was not answered. ``status``: the server's, 0 when it does not answer at all.

    ``retry_after``: seconds after which to ask again, where the server says so.
    """

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class SearchClient:
    """Asks the server at ``address``; ``timeout`` in seconds. Several threads can use one client.

    ``key``: what the server's owner has given, where it asks for one. It is sent to that server and never in an
    address, nor to where that server redirects.
    """

    def __init__(self, address: str, timeout: float = 30.0, api_key: str = "") -> None:
        if api_key and not _API_KEY.fullmatch(api_key):
            raise InputError("the key for the search has signs that no key has")
        self.address, self.timeout, self._api_key = address.rstrip("/"), timeout, api_key
        self._opener = build_opener(ProxyHandler({}))

    def search(self, query: str, **options: Any) -> SearchResponse:
        """Return what a query finds; ``options`` are those of :class:`~nutch2py.search.search_schemas.SearchQuery`.

        Lists (``facets``, ``fields``) may be lists; None is as if it was not given. Raise :class:`SearchError`.
        """
        given = {
            name: ",".join(value) if isinstance(value, (list, tuple)) else value
            for name, value in options.items()
            if value is not None
        }
        return self._request("search", {"q": query, **given}, SearchResponse)

    def suggest(self, prefix: str) -> SuggestResponse:
        """Return what may be meant by the beginning of a query."""
        return self._request("suggest", {"q": prefix}, SuggestResponse)

    def _request(self, path: str, arguments: dict[str, Any], kind: type[T]) -> T:
        try:
            request = Request(f"{self.address}/api/v1/{path}?{urlencode(arguments)}")
            if self._api_key:
                request.add_unredirected_header("Authorization", f"Bearer {self._api_key}")
            with self._opener.open(request, timeout=self.timeout) as answer:
                return msgspec.json.decode(answer.read(), type=kind)
        except HTTPError as error:
            raise _http_search_error(error) from error
        except msgspec.MsgspecError as error:
            raise SearchError(0, f"{self.address} answers what is no result of a search: {error}") from error
        except (OSError, HTTPException, ValueError) as error:  # ValueError: of an address that is none
            why = error.reason if isinstance(error, URLError) else error
            raise SearchError(0, f"{self.address} does not answer: {why}") from error

    def iter_hits(self, query: str, **options: Any) -> Iterator[SearchHit]:
        """Yield all hits, the best first, however many."""
        cursor: str | None = "*"
        while cursor:
            found = self.search(query, **{"rows": _ROWS_PER_REQUEST, **options, "cursor": cursor})
            yield from found.hits
            cursor = found.cursor


class AsyncSearchClient:
    """The same for asyncio: each request has a thread of its own."""

    def __init__(self, address: str, timeout: float = 30.0, api_key: str = "") -> None:
        self._client = SearchClient(address, timeout, api_key)

    async def search(self, query: str, **options: Any) -> SearchResponse:
        """Return what a query finds."""
        return await asyncio.to_thread(self._client.search, query, **options)

    async def suggest(self, prefix: str) -> SuggestResponse:
        """Return what may be meant by the beginning of a query."""
        return await asyncio.to_thread(self._client.suggest, prefix)

    async def iter_hits(self, query: str, **options: Any) -> AsyncIterator[SearchHit]:
        """Yield all hits, the best first."""
        cursor: str | None = "*"
        while cursor:
            found = await self.search(query, **{"rows": _ROWS_PER_REQUEST, **options, "cursor": cursor})
            for hit in found.hits:
                yield hit
            cursor = found.cursor


def _http_search_error(error: HTTPError) -> SearchError:
    """Return the error of an answer that refuses."""
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
