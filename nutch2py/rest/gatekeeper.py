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
from nutch2py.rest.office import Office
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.streams import Streams
from nutch2py.rest.threads import Threads
from nutch2py.rest.tokens import Caller, Role
from nutch2py.search.origins import Origins

_THREADS = 16
_REMEMBERED = 4096  # of those who ask
_RATES = ("by this token", "rest.requests.per.second")
_BURST = 5  # seconds whose requests may come at once
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="nutch2py", charset="UTF-8"'}
"""Programs send ``Authorization: Bearer TOKEN``; people in a browser give it as the password of any name."""
_KEY_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="nutch2py"'}
"""Of the search, which pages ask by script: a browser shows no dialogue for it."""
_NETWORK = 64  # bits of an address of IPv6 that are one who asks: the others are his to choose


class Gatekeeper:
    """In front of an office."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.threads = Threads(_THREADS)
        self.streams = Streams()
        self._most_bytes = office.conf.get_int("rest.body.max.bytes", 1 << 20)
        self._origins = Origins.of(office.conf)
        self._rate = Rate(office.conf.get_float("rest.requests.per.second", 50.0))
        self._keys = office.conf.get_bool("search.keys.required", False)
        if self._keys and office.tokens.path is None:
            raise ConfigurationError(
                "search.keys.required is set, and rest.tokens.file is not: name the file that nutch2py token fills"
            )

    def admitted(self, request: Request, role: Role, changes: bool) -> Caller:
        """Return who asks; Refusal for who may not do what ``role`` may, or asks too often.

        What ``changes`` anything is not asked for by a page of another site, which a browser would send a login along.
        Who has a token is counted by it, wherever he asks from; all others by their address.
        """
        if role == Role.SEARCH and not self._keys:
            role = Role.NOBODY
        found = refusal = None
        try:
            found = self._caller(request, role)
        except Refusal as error:
            refusal = error
        if found is not None and self.office.tokens.path is not None:
            self._rate.take(("token", found.name), found.rate)
        else:
            self._rate.take(("address", network(request.client.host if request.client else "")))
        if refusal is not None:
            raise refusal
        if role > Role.NOBODY and found is None:
            if role == Role.SEARCH:
                raise Refusal(HTTPStatus.UNAUTHORIZED, "this needs a key (docs/search-api.md)", _KEY_CHALLENGE)
            raise Refusal(HTTPStatus.UNAUTHORIZED, "this needs a token (docs/rest.md)", _CHALLENGE)
        caller = found or Caller("", Role.NOBODY)
        if caller.role < role:
            told = f"this needs the role {role.name.lower()}, and {caller.name} has {caller.role.name.lower()}"
            raise Refusal(HTTPStatus.FORBIDDEN, told)
        if changes and _from_elsewhere(request):
            raise Refusal(HTTPStatus.FORBIDDEN, "a page of another site asked for this")
        return caller

    def _caller(self, request: Request, role: Role) -> Caller | None:
        """Return who asks; also where nobody needs to say so, of who says it."""
        authorization = request.headers.get("authorization", "")
        if role > Role.NOBODY:
            return self.office.caller(authorization)
        if authorization and self.office.tokens.path is not None:
            with suppress(Refusal):  # tokens that cannot be read are nothing to who needs none
                return self.office.caller(authorization)
        return None

    def may_read(self, request: Request) -> bool:
        """Tell whether who asks for something else, which is no request of these paths, could read what is here.

        Where nobody can, or tokens cannot be read, nobody is refused: what was asked for is something else.
        """
        try:
            caller = self.office.caller(request.headers.get("authorization", ""))
        except Refusal:
            return False
        return caller is not None and caller.role >= Role.READ

    def shared_with(self, request: Request) -> dict[str, str]:
        """Return the headers by which pages of other sites may read an answer (``search.cors.origins``)."""
        return self._origins.headers(origin_of(request))

    def preflight(self, request: Request, methods: Iterable[str]) -> Response:
        """Return the answer to a browser that asks whether a page of another site may ask by these methods."""
        headers = self._origins.preflight(origin_of(request), methods)
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(methods), **headers})

    async def body(self, request: Request) -> bytes:
        """Return the body of a request, which is not longer than may be."""
        told = f"a body has at most {self._most_bytes:,} bytes (rest.body.max.bytes)"
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most_bytes:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > self._most_bytes:
                    raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
                parts.append(part)
        except ClientDisconnect:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the body did not arrive") from None
        return b"".join(parts)


class Rate:
    """So many requests a second of each who asks, a few seconds' worth at once; thousands are remembered."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take(self, who: tuple[str, str], own: float | None = None) -> None:
        """Count a request; Refusal for one too many. ``own``: the rate of who asks; one of 0 allows any number."""
        per_second = self._per_second if own is None else own
        if per_second <= 0:
            return
        now, most = time.monotonic(), max(1.0, per_second * _BURST)
        with self._lock:
            left, since = self._known.pop(who, (most, now))
            left = min(most, left + (now - since) * per_second)
            self._known[who] = (left - 1 if left >= 1 else left, now)  # what is refused costs nothing: he may wait
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        if left < 1:
            told = f"too many requests: {per_second:g} a second are allowed ({_RATES[own is None]})"
            after = str(math.ceil((1 - left) / per_second))
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": after})


def network(address: str) -> str:
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
    return str(ipaddress.IPv6Address(int(found) >> (128 - _NETWORK) << (128 - _NETWORK)))


def origin_of(request: Request) -> str:
    """Return the site whose page asks; "" for none, or when several are named, of which a browser sends none."""
    named = request.headers.getlist("origin")
    return named[0] if len(named) == 1 else ""


def _from_elsewhere(request: Request) -> bool:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return True
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    except ValueError:
        return True
