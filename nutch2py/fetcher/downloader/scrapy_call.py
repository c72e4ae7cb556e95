"""What is known of one request of the fetcher while it takes Scrapy's whole way, past add-ons of any kind."""

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
"""Headers of a response whose body is decoded, or cut: what they say outlives a cache. As in WARC files."""


class Politeness(Protocol):
    """What add-ons may ask for beyond the page in hand, and when."""

    async def request_permission(self, url: str, page_url: str, is_repeat: bool) -> str:
        """Wait until a URL may be asked for; return why it may not, or "".

        ``page_url``: the page in hand, "" for none; ``is_repeat``: its server has been asked for it already.
        """
        ...

    async def wait_for_extra_requests(self, page_url: str) -> None:
        """Wait with the page in hand for what was asked of its server since its turn came."""
        ...


@dataclass(slots=True, eq=False)
class ScrapyCall:
    """One call of ``Transport.get``; it travels in the request's ``to_meta``, which copies of the request share.

    ``url``: as it stands in the first request. ``request_count``: how many have reached the downloader. ``handler_result``: what
    the handler returned or raised last, and ``fetch_response`` what it stands for. ``download_task``: which downloads it now; it is not
    ended with the task that waits.
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
        """Let go of what refers to it in its turn: request and response go at once, and wait for no collector."""
        self.fetch_response = self.download_task = self.handler_result = None


def get_scrapy_call(request: Request) -> ScrapyCall | None:
    """Return which call a request belongs to; None for a request that an add-on made anew."""
    found = request.meta.get(_META_KEY)
    return found if isinstance(found, ScrapyCall) else None


def build_headers(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return fields as Scrapy's headers, which would look at each name and value thrice."""
    from scrapy.http import Headers

    found: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        found.setdefault(name.title(), []).append(value)
    headers = Headers()
    dict.update(headers, found)
    return headers
