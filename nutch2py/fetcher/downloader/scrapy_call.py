"""State of one fetcher request while it passes through Scrapy's engine and middlewares."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nutch2py.fetcher.protocols.fetch_response import FetchResponse

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Headers

_META_KEY = "nutch2py"

ENCODING_HEADER, TRUNCATED_HEADER = "X-Crawler-Content-Encoding", "X-Crawler-Truncated"
"""Headers of decoded or truncated responses; they survive Scrapy's HTTP cache and are in WARC files."""


class ExtraRequestPolicy(Protocol):
    """Applies crawl delays and robots.txt to extra requests made by Scrapy add-ons."""

    async def request_permission(self, url: str, page_url: str, is_repeat: bool) -> str:
        """Wait until a URL may be requested; return the reason if it may not, else "".

        Args:
            url: URL to request.
            page_url: URL of the page being fetched, "" for none.
            is_repeat: Whether the page's server has already received a request for it.
        """
        ...

    async def wait_for_extra_requests(self, page_url: str) -> None:
        """Wait for the extra requests sent to the page's server since the page's turn came."""
        ...


@dataclass(slots=True, eq=False)
class ScrapyCall:
    """One call of ``ScrapyTransport.get``; copies of the request share it through ``meta``.

    Attributes:
        url: URL of the first request, unchanged.
        limit: Content limit in bytes, negative for none.
        request_count: Requests that have reached the downloader.
        received_bytes: Body bytes of the current request.
        fetch_response: The fetcher's response that ``handler_result`` corresponds to.
        download_task: Task of the current download; cancelling the waiting task does not cancel it.
        handler_result: Response or exception that the handler produced last.
    """

    url: str
    limit: int
    request_count: int = 0
    received_bytes: int = 0
    fetch_response: FetchResponse | None = None
    download_task: asyncio.Task[Any] | None = field(default=None, repr=False)
    handler_result: object = field(default=None, repr=False)

    def to_meta(self) -> dict[str, object]:
        """Return the entry of a request's ``meta``."""
        return {_META_KEY: self}

    def clear(self) -> None:
        """Break reference cycles, so that request and response are freed without the garbage collector."""
        self.fetch_response = self.download_task = self.handler_result = None


def get_scrapy_call(request: Request) -> ScrapyCall | None:
    """Return the call that a request belongs to, or None if an add-on created the request."""
    call = request.meta.get(_META_KEY)
    return call if isinstance(call, ScrapyCall) else None


def build_headers(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the fields as Scrapy headers, without Scrapy's threefold normalization of names and values."""
    from scrapy.http import Headers

    values_by_name: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        values_by_name.setdefault(name.title(), []).append(value)
    headers = Headers()
    dict.update(headers, values_by_name)
    return headers
