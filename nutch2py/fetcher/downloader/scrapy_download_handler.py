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

from nutch2py.fetcher.downloader.download_handler import PycurlDownloadHandler
from nutch2py.fetcher.downloader.scrapy_call import ENCODING_HEADER, TRUNCATED_HEADER, build_headers, get_scrapy_call
from nutch2py.fetcher.protocols.curl_transfer import RequestOverrides
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse

_EXCEPTIONS: dict[FailureKind, type[Exception]] = {
    FailureKind.DNS: CannotResolveHostError,
    FailureKind.REFUSED: DownloadConnectionRefusedError,
    FailureKind.TIMEOUT: DownloadTimeoutError,
    # what another try cannot mend, so that no add-on makes one
    FailureKind.ADDRESS_FILTER: IgnoreRequest,
    FailureKind.URL: IgnoreRequest,
    FailureKind.LIMIT: IgnoreRequest,
}
_ENCODING_HEADER, _TRUNCATED_HEADER = ENCODING_HEADER.encode(), TRUNCATED_HEADER.encode()
_PROXY_AUTHORIZATION = b"Proxy-Authorization"


class ScrapyDownloadHandler(PycurlDownloadHandler):
    """Carries requests of any method."""

    async def download_request(self, request: Request) -> Response:
        """Carry one request; raise one of Scrapy's exceptions when there is no answer."""
        asked = get_scrapy_call(request)
        limit = request.meta.get("limit", self._http.content_limit)
        answer = await self.fetch(request.url, limit, overrides=_request_overrides(request))
        outcome: Any = _to_scrapy_response(request, answer) if answer.failure is None else _to_exception(answer.failure)
        if asked is not None:
            asked.fetch_response, asked.handler_result = answer, outcome
        if answer.failure is not None:
            raise outcome
        return outcome  # type: ignore[no-any-return]


def _request_overrides(request: Request) -> RequestOverrides:
    lines: list[bytes] = []
    of_proxy: list[bytes] = []
    for name, values in dict.items(request.headers):  # Scrapy's own looks each name up again
        (of_proxy if name == _PROXY_AUTHORIZATION else lines).extend(name + b": " + value for value in values)
    return RequestOverrides(
        tuple(lines), request.method, request.body, request.meta.get("proxy") or "", tuple(of_proxy)
    )


def _to_exception(failure: FetchFailure) -> Exception:
    return _EXCEPTIONS.get(failure.kind, DownloadFailedError)(failure.message)


def _to_scrapy_response(request: Request, answer: FetchResponse) -> Response:
    """Make a response of the class that fits the content, which is decoded."""
    fields = []
    for name, value in answer.iter_headers():
        coded = len(name) == 16 and name.lower() == "content-encoding"
        fields.append((_ENCODING_HEADER if coded else name.encode("latin-1"), value.encode("latin-1")))
    if answer.truncated:
        fields.append((_TRUNCATED_HEADER, answer.truncated.encode()))
    headers = build_headers(fields)
    kind = responsetypes.from_args(headers=headers, url=request.url, body=answer.content)
    response = kind(request.url, answer.status, None, answer.content, request=request)
    response.headers = headers
    return response
