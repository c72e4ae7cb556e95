"""SearchClient: asks the interface for applications of a server, ``/api/v1/search``, from Python.

    client = SearchClient("http://127.0.0.1:8080")
    for hit in client.search("web crawler").hits:
        print(hit.title, hit.url)

Answers are of the types of :mod:`nutch2py.search.interface`. It needs msgspec and nothing else of nutch2py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import msgspec

from nutch2py.errors import NutchError
from nutch2py.search.interface import SearchAnswer, SearchHit

_AT_ONCE = 100


class SearchError(NutchError):
    """A search that was not answered. ``status``: the server's, 0 when it does not answer at all."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status


class SearchClient:
    """Asks the server at ``address``; ``timeout`` in seconds. Several threads can use one client."""

    def __init__(self, address: str, timeout: float = 30.0) -> None:
        self.address, self.timeout = address.rstrip("/"), timeout
        self._opener = build_opener(ProxyHandler({}))

    def search(self, query: str, **options: Any) -> SearchAnswer:
        """Return what a query finds; ``options`` are those of :class:`~nutch2py.search.interface.SearchAsked`.

        Lists (``facets``, ``fields``) may be lists. Raise :class:`SearchError`.
        """
        given = {
            name: ",".join(value) if isinstance(value, (list, tuple)) else value for name, value in options.items()
        }
        url = f"{self.address}/api/v1/search?{urlencode({'q': query, **given})}"
        try:
            with self._opener.open(Request(url), timeout=self.timeout) as answer:
                return msgspec.json.decode(answer.read(), type=SearchAnswer)
        except HTTPError as error:
            raise SearchError(error.code, _told(error.read(100_000)) or str(error.reason)) from error
        except OSError as error:
            why = error.reason if isinstance(error, URLError) else error
            raise SearchError(0, f"{self.address} does not answer: {why}") from error
        except msgspec.MsgspecError as error:
            raise SearchError(0, f"{self.address} answers what is no result of a search: {error}") from error

    def walk(self, query: str, **options: Any) -> Iterator[SearchHit]:
        """Yield all hits, the best first, however many."""
        cursor: str | None = "*"
        while cursor:
            found = self.search(query, **{"rows": _AT_ONCE, **options, "cursor": cursor})
            yield from found.hits
            cursor = found.cursor


class AsyncSearchClient:
    """The same for asyncio: each request has a thread of its own."""

    def __init__(self, address: str, timeout: float = 30.0) -> None:
        self._client = SearchClient(address, timeout)

    async def search(self, query: str, **options: Any) -> SearchAnswer:
        """Return what a query finds."""
        return await asyncio.to_thread(self._client.search, query, **options)

    async def walk(self, query: str, **options: Any) -> AsyncIterator[SearchHit]:
        """Yield all hits, the best first."""
        cursor: str | None = "*"
        while cursor:
            found = await self.search(query, **{"rows": _AT_ONCE, **options, "cursor": cursor})
            for hit in found.hits:
                yield hit
            cursor = found.cursor


def _told(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return ""
