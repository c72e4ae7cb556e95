"""Who is let in: tokens and roles, how often, with how much, and from which page of a browser."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request

from nutch2py.rest.office import Office
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.streams import Streams
from nutch2py.rest.threads import Threads
from nutch2py.rest.tokens import Caller, Role
from nutch2py.search.origins import Origins

_THREADS = 16
_REMEMBERED = 4096  # of those who ask
_BURST = 5  # seconds whose requests may come at once
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="nutch2py", charset="UTF-8"'}
"""Programs send ``Authorization: Bearer TOKEN``; people in a browser give it as the password of any name."""


class Gatekeeper:
    """In front of an office."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.threads = Threads(_THREADS)
        self.streams = Streams()
        self._most_bytes = office.conf.get_int("rest.body.max.bytes", 1 << 20)
        self._origins = Origins.of(office.conf)
        self._rate = Rate(office.conf.get_float("rest.requests.per.second", 50.0))

    def admitted(self, request: Request, role: Role, changes: bool) -> Caller:
        """Return who asks; Refusal for who may not do what ``role`` may, or asks too often.

        What ``changes`` anything is not asked for by a page of another site, which a browser would send a login along.
        """
        address = request.client.host if request.client else ""
        self._rate.take(address)
        caller = Caller("", Role.NOBODY)
        if role > Role.NOBODY:
            found = self.office.caller(request.headers.get("authorization", ""))
            if found is None:
                raise Refusal(HTTPStatus.UNAUTHORIZED, "this needs a token (docs/rest.md)", _CHALLENGE)
            caller = found
        if caller.role < role:
            told = f"this needs the role {role.name.lower()}, and {caller.name} has {caller.role.name.lower()}"
            raise Refusal(HTTPStatus.FORBIDDEN, told)
        if changes and _from_elsewhere(request):
            raise Refusal(HTTPStatus.FORBIDDEN, "a page of another site asked for this")
        return caller

    def shared_with(self, request: Request) -> dict[str, str]:
        """Return the headers by which pages of other sites may read an answer (``search.cors.origins``)."""
        return self._origins.headers(request.headers.get("origin", ""))

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
    """So many requests a second of each who asks, a few seconds' worth at once."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> None:
        """Count a request; Refusal for one too many. A rate of 0 allows any number."""
        if self._per_second <= 0:
            return
        now, most = time.monotonic(), max(1.0, self._per_second * _BURST)
        with self._lock:
            left, since = self._known.pop(who, (most, now))
            left = min(most, left + (now - since) * self._per_second)
            self._known[who] = (max(left - 1, 0.0), now)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        if left < 1:
            told = "too many requests (rest.requests.per.second)"
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": "1"})


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
