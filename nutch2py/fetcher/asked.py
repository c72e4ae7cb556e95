"""What is known of one request of the fetcher while it takes Scrapy's whole way, past add-ons of any kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nutch2py.fetcher.answer import Answer

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Headers

_KEY = "nutch2py"

CODING, TRUNCATED = "X-Crawler-Content-Encoding", "X-Crawler-Truncated"
"""Headers of a response whose body is decoded, or cut: what they say outlives a cache. As in WARC files."""


class Manners(Protocol):
    """What add-ons may ask for beyond the page in hand, and when."""

    async def permit(self, url: str, page: str, again: bool) -> str:
        """Wait until a URL may be asked for; return why it may not, or "".

        ``page``: the page in hand, "" for none; ``again``: its server has been asked for it already.
        """
        ...

    async def turn(self, page: str) -> None:
        """Wait with the page in hand for what was asked of its server since its turn came."""
        ...


@dataclass(slots=True, eq=False)
class Asked:
    """One call of ``Transport.get``; it travels in the request's ``meta``, which copies of the request share.

    ``url``: as it stands in the first request. ``requests``: how many have reached the downloader. ``outcome``: what
    the handler returned or raised last, and ``answer`` what it stands for. ``task``: which downloads it now; it is not
    ended with the task that waits.
    """

    url: str
    limit: int
    requests: int = 0
    received: int = 0
    answer: Answer | None = None
    task: asyncio.Task[Any] | None = field(default=None, repr=False)
    outcome: object = field(default=None, repr=False)

    def meta(self) -> dict[str, object]:
        """Return the entry of a request's ``meta``."""
        return {_KEY: self}

    def forget(self) -> None:
        """Let go of what refers to it in its turn: request and response go at once, and wait for no collector."""
        self.answer = self.task = self.outcome = None


def asked_by(request: Request) -> Asked | None:
    """Return which call a request belongs to; None for a request that an add-on made anew."""
    found = request.meta.get(_KEY)
    return found if isinstance(found, Asked) else None


def headers_of(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return fields as Scrapy's headers, which would look at each name and value thrice."""
    from scrapy.http import Headers

    found: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        found.setdefault(name.title(), []).append(value)
    headers = Headers()
    dict.update(headers, found)
    return headers
