"""The document of a page: as the browser is given it, and as it was taken down."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple

from nutch2py.fetcher.answer import Answer, Rendered

_NOT_SHOWN = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "content-disposition"}
)  # of the body as it was sent, and what would make a download of it
_HSTS = frozenset({"strict-transport-security", "alt-svc"})  # nothing that lasts beyond the page


class PageError(Exception):
    """A page of which nothing can be taken down. ``limit``: the property of the limit that it met, "" for a crash."""

    def __init__(self, limit: str, text: str) -> None:
        super().__init__(text)
        self.limit, self.text = limit, text


class Taken(NamedTuple):
    """A document as it was taken down: UTF-8 with a byte order mark, and what else there is to say of it."""

    content: bytes
    rendered: Rendered


def given(answer: Answer) -> dict[str, Any]:
    """Return what answers the browser's first request: what the fetcher got, so that the server is asked once."""
    headers = [
        {"name": name, "value": value} for name, value in answer.fields() if name.lower() not in _NOT_SHOWN | _HSTS
    ]
    body = b64encode(answer.content).decode("ascii")
    return {"responseCode": 200, "responseHeaders": headers, "body": body}
