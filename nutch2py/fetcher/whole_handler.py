"""The handler over libcurl as add-ons of Scrapy expect one: headers, method, body and proxy count; failures raise."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Response
from scrapy.responsetypes import responsetypes

from nutch2py.fetcher.answer import Answer, Failure, FailureKind
from nutch2py.fetcher.asked import CODING, TRUNCATED, asked_by, headers_of
from nutch2py.fetcher.handler import PycurlDownloadHandler
from nutch2py.fetcher.transfer import Wish

_ERRORS: dict[FailureKind, type[Exception]] = {
    FailureKind.DNS: CannotResolveHostError,
    FailureKind.REFUSED: DownloadConnectionRefusedError,
    FailureKind.TIMEOUT: DownloadTimeoutError,
    # what another try cannot mend, so that no add-on makes one
    FailureKind.GATE: IgnoreRequest,
    FailureKind.URL: IgnoreRequest,
    FailureKind.LIMIT: IgnoreRequest,
}
_CODING, _TRUNCATED = CODING.encode(), TRUNCATED.encode()
_OF_PROXY = b"Proxy-Authorization"


class WholeDownloadHandler(PycurlDownloadHandler):
    """Carries requests of any method."""

    async def download_request(self, request: Request) -> Response:
        """Carry one request; raise one of Scrapy's exceptions when there is no answer."""
        asked = asked_by(request)
        limit = request.meta.get("limit", self._http.content_limit)
        answer = await self.ask(request.url, limit, wish=_wish(request))
        outcome: Any = _response(request, answer) if answer.failure is None else _error(answer.failure)
        if asked is not None:
            asked.answer, asked.outcome = answer, outcome
        if answer.failure is not None:
            raise outcome
        return outcome  # type: ignore[no-any-return]


def _wish(request: Request) -> Wish:
    lines: list[bytes] = []
    of_proxy: list[bytes] = []
    for name, values in dict.items(request.headers):  # Scrapy's own looks each name up again
        (of_proxy if name == _OF_PROXY else lines).extend(name + b": " + value for value in values)
    return Wish(tuple(lines), request.method, request.body, request.meta.get("proxy") or "", tuple(of_proxy))


def _error(failure: Failure) -> Exception:
    return _ERRORS.get(failure.kind, DownloadFailedError)(failure.text)


def _response(request: Request, answer: Answer) -> Response:
    """Make a response of the class that fits the content, which is decoded."""
    fields = []
    for name, value in answer.fields():
        coded = len(name) == 16 and name.lower() == "content-encoding"
        fields.append((_CODING if coded else name.encode("latin-1"), value.encode("latin-1")))
    if answer.truncated:
        fields.append((_TRUNCATED, answer.truncated.encode()))
    headers = headers_of(fields)
    kind = responsetypes.from_args(headers=headers, url=request.url, body=answer.content)
    response = kind(request.url, answer.status, None, answer.content, request=request)
    response.headers = headers
    return response
