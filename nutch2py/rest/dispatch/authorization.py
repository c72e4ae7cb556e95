"""Who is let in: tokens and roles, how often, with how much, and from which page of a browser."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from nutch2py.errors import ConfigurationError
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.sse import EventStreams
from nutch2py.rest.dispatch.thread_limit import ThreadLimit
from nutch2py.rest.http_error import HttpError
from nutch2py.search.cors import CorsPolicy

_MAX_THREADS = 16
_MAX_CLIENTS = 4096  # of those who ask
_RATE_SOURCES = ("by this token", "rest.requests.per.second")
_BURST_SECONDS = 5  # seconds whose requests may come at once
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="nutch2py", charset="UTF-8"'}
"""Programs send ``Authorization: Bearer TOKEN``; people in a browser give it as the password of any name."""
_KEY_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="nutch2py"'}
"""Of the search, which pages ask by script: a browser shows no dialogue for it."""
_IPV6_PREFIX_BITS = 64  # bits of an address of IPv6 that are one who asks: the others are his to choose


class Authorizer:
    """In front of an office."""

    def __init__(self, context: RestContext) -> None:
        self.context = context
        self.thread_limit = ThreadLimit(_MAX_THREADS)
        self.event_streams = EventStreams()
        self._max_body_bytes = context.conf.get_int("rest.body.max.bytes", 1 << 20)
        self._origins = CorsPolicy.from_conf(context.conf)
        self._rate_limiter = RateLimiter(context.conf.get_float("rest.requests.per.second", 50.0))
        self._requires_search_key = context.conf.get_bool("search.keys.required", False)
        if self._requires_search_key and context.tokens.path is None:
            raise ConfigurationError(
                "search.keys.required is set, and rest.tokens.file is not: name the file that nutch2py token fills"
            )

    def authorize(self, request: Request, role: Role, modifies: bool) -> Caller:
        """Return who asks; Refusal for who may not do what ``role`` may, or asks too often.

        What ``modifies`` anything is not asked for by a page of another site, which a browser would send a login along.
        Who has a token is counted by it, wherever he asks from; all others by their address.
        """
        if role == Role.SEARCH and not self._requires_search_key:
            role = Role.ANONYMOUS
        found = refusal = None
        try:
            found = self._authenticate(request, role)
        except HttpError as error:
            refusal = error
        if found is not None and self.context.tokens.path is not None:
            self._rate_limiter.check(("token", found.name), found.rate)
        else:
            self._rate_limiter.check(("address", rate_limit_key(request.client.host if request.client else "")))
        if refusal is not None:
            raise refusal
        if role > Role.ANONYMOUS and found is None:
            if role == Role.SEARCH:
                raise HttpError(HTTPStatus.UNAUTHORIZED, "this needs a key (docs/search-api.md)", _KEY_CHALLENGE)
            raise HttpError(HTTPStatus.UNAUTHORIZED, "this needs a token (docs/rest.md)", _CHALLENGE)
        caller = found or Caller("", Role.ANONYMOUS)
        if caller.role < role:
            told = f"this needs the role {role.name.lower()}, and {caller.name} has {caller.role.name.lower()}"
            raise HttpError(HTTPStatus.FORBIDDEN, told)
        if modifies and _is_cross_site(request):
            raise HttpError(HTTPStatus.FORBIDDEN, "a page of another site asked for this")
        return caller

    def _authenticate(self, request: Request, role: Role) -> Caller | None:
        """Return who asks; also where nobody needs to say so, of who says it."""
        authorization = request.headers.get("authorization", "")
        if role > Role.ANONYMOUS:
            return self.context.authenticate(authorization)
        if authorization and self.context.tokens.path is not None:
            with suppress(HttpError):  # tokens that cannot be read are nothing to who needs none
                return self.context.authenticate(authorization)
        return None

    def can_read(self, request: Request) -> bool:
        """Tell whether who asks for something else, which is no request of these paths, could read what is here.

        Where nobody can, or tokens cannot be read, nobody is refused: what was asked for is something else.
        """
        try:
            caller = self.context.authenticate(request.headers.get("authorization", ""))
        except HttpError:
            return False
        return caller is not None and caller.role >= Role.READ

    def cors_headers(self, request: Request) -> dict[str, str]:
        """Return the headers by which pages of other sites may read an answer (``search.cors.origins``)."""
        return self._origins.response_headers(request_origin(request))

    def preflight_response(self, request: Request, methods: Iterable[str]) -> Response:
        """Return the answer to a browser that asks whether a page of another site may ask by these methods."""
        headers = self._origins.preflight_headers(request_origin(request), methods)
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(methods), **headers})

    async def read_body(self, request: Request) -> bytes:
        """Return the body of a request, which is not longer than may be."""
        told = f"a body has at most {self._max_body_bytes:,} bytes (rest.body.max.bytes)"
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._max_body_bytes:
            raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > self._max_body_bytes:
                    raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
                parts.append(part)
        except ClientDisconnect:
            raise HttpError(HTTPStatus.BAD_REQUEST, "the body did not arrive") from None
        return b"".join(parts)


class RateLimiter:
    """So many requests a second of each who asks, a few seconds' worth at once; thousands are remembered."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def check(self, client: tuple[str, str], client_rate: float | None = None) -> None:
        """Count a request; Refusal for one too many. ``client_rate``: the rate of who asks; one of 0 allows any number."""
        per_second = self._per_second if client_rate is None else client_rate
        if per_second <= 0:
            return
        now, most = time.monotonic(), max(1.0, per_second * _BURST_SECONDS)
        with self._lock:
            left, since = self._buckets.pop(client, (most, now))
            left = min(most, left + (now - since) * per_second)
            self._buckets[client] = (left - 1 if left >= 1 else left, now)  # what is refused costs nothing: he may wait
            if len(self._buckets) > _MAX_CLIENTS:
                self._buckets.popitem(last=False)
        if left < 1:
            told = f"too many requests: {per_second:g} a second are allowed ({_RATE_SOURCES[client_rate is None]})"
            after = str(math.ceil((1 - left) / per_second))
            raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": after})


def rate_limit_key(address: str) -> str:
    """Return by what an address is counted: one of IPv6 by its network, whose others who asks can take, too.

    >>> network("2001:db8::1:2"), network("::ffff:192.0.2.1"), network("192.0.2.1"), network("")
    ('2001:db8::', '192.0.2.1', '192.0.2.1', '')
    """
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> (128 - _IPV6_PREFIX_BITS) << (128 - _IPV6_PREFIX_BITS)))


def request_origin(request: Request) -> str:
    """Return the site whose page asks; "" for none, or when several are named, of which a browser sends none."""
    named = request.headers.getlist("origin")
    return named[0] if len(named) == 1 else ""


def _is_cross_site(request: Request) -> bool:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return True
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    except ValueError:
        return True
