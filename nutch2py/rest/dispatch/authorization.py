"""Authorization of requests: roles, rate limits and cross-site checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from nutch2py.errors import ConfigurationError
from nutch2py.rest.access.cross_site import check_change, request_origin
from nutch2py.rest.access.form_tokens import FORM_HEADER, FormTokens
from nutch2py.rest.access.rate_limiter import RateLimiter, rate_limit_key
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.sse import EventStreams
from nutch2py.rest.http_error import HttpError
from nutch2py.search.cors import CorsPolicy
from nutch2py.support.thread_limit import ThreadLimit

_MAX_THREADS, _MAX_STORE_THREADS = 16, 8
_MAX_STORE_REQUESTS = 64  # of which the threads serve some, the others wait
P = ParamSpec("P")
T = TypeVar("T")
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="nutch2py", charset="UTF-8"'}
"""Programs send ``Authorization: Bearer TOKEN``; browsers send the token as the password of any user name."""
_KEY_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="nutch2py"'}
"""For the search API, which scripts call: browsers show no login dialog for Bearer."""


class StoreThreadLimit(ThreadLimit):
    """Threads of requests that read a store; of many requests during an outage, most are rejected at once."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._pending = 0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of ``work``; raise HttpError when too many requests wait."""
        if self._pending >= _MAX_STORE_REQUESTS:
            message = "too many requests wait for the store, which is slow or unavailable"
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, message, {"Retry-After": "5"})
        self._pending += 1
        try:
            return await super().run(work, *args, **kwargs)
        finally:
            self._pending -= 1


class Authorizer:
    """Checks each request before its handler runs.

    Attributes:
        context: Shared services of the server.
        rate_limiter: Rate limits of clients by token or address.
        thread_limit: Limit of the threads that handlers occupy.
        store_thread_limit: Limit of the threads that wait for a store, so that others never do.
        event_streams: Open streams of events.
        form_tokens: Tokens of the forms of the control room.
    """

    def __init__(self, context: RestContext) -> None:
        self.context = context
        self.thread_limit = ThreadLimit(_MAX_THREADS)
        self.store_thread_limit = StoreThreadLimit(_MAX_STORE_THREADS)
        self.event_streams = EventStreams()
        self.form_tokens = FormTokens(is_shared=context.tokens.path is not None)
        self._allows_basic_changes = context.conf.get_bool("rest.basic.changes", False)
        self._public_url = context.conf.get_trimmed("search.page.address")
        self._origins = CorsPolicy.from_conf(context.conf)
        self.rate_limiter = RateLimiter(context.conf.get_float("rest.requests.per.second", 50.0))
        self._requires_search_key = context.conf.get_bool("search.keys.required", False)
        if self._requires_search_key and context.tokens.path is None:
            raise ConfigurationError(
                "search.keys.required is set, but rest.tokens.file is not: set it to the file of nutch2py token"
            )

    def authorize(self, request: Request, role: Role, modifies: bool) -> Caller:
        """Return the caller of a request.

        The rate limit counts callers with a token by the token, all others by their address.

        Args:
            request: the request.
            role: the least role that the operation requires.
            modifies: whether the operation changes anything; then the request must prove its origin
                (:meth:`check_change`), because browsers attach the login of the user to requests of other sites.

        Raises:
            HttpError: the role is missing, the rate limit is exceeded, or the origin is not proven.
        """
        if role == Role.SEARCH and not self._requires_search_key:
            role = Role.ANONYMOUS
        known = rejection = None
        try:
            known = self._authenticate(request, role)
        except HttpError as error:
            rejection = error
        if known is not None and self.context.tokens.path is not None:
            self.rate_limiter.check(("token", known.name), known.rate)
        else:
            self.rate_limiter.check(("address", rate_limit_key(request.client.host if request.client else "")))
        if rejection is not None:
            raise rejection
        if role > Role.ANONYMOUS and known is None:
            if role == Role.SEARCH:
                raise HttpError(HTTPStatus.UNAUTHORIZED, "an API key is required (docs/search-api.md)", _KEY_CHALLENGE)
            raise HttpError(HTTPStatus.UNAUTHORIZED, "a token is required (docs/rest.md)", _CHALLENGE)
        caller = known or Caller("", Role.ANONYMOUS)
        if caller.role < role:
            message = f"the role {role.name.lower()} is required; {caller.name} has the role {caller.role.name.lower()}"
            raise HttpError(HTTPStatus.FORBIDDEN, message)
        if modifies:
            self.check_change(request, request.headers.get(FORM_HEADER, ""))
        return caller

    def check_change(self, request: Request, form_token: str) -> None:
        """Raise HttpError unless a request that changes something proves its origin.

        ``form_token``: of the form or the header, "" for none.
        """
        has_form_token = bool(form_token) and self.form_tokens.is_valid(request, form_token)
        reason = check_change(request, has_form_token, self._allows_basic_changes, self._public_url)
        if reason:
            raise HttpError(HTTPStatus.FORBIDDEN, reason)

    def _authenticate(self, request: Request, role: Role) -> Caller | None:
        """Return the caller; for the role ``anonymous``, the caller of a valid token if the request has one."""
        authorization = request.headers.get("authorization", "")
        if role > Role.ANONYMOUS:
            return self.context.authenticate(authorization)
        if authorization and self.context.tokens.path is not None:
            with suppress(HttpError):  # an unreadable tokens file does not matter: none is required
                return self.context.authenticate(authorization)
        return None

    def can_read(self, request: Request) -> bool:
        """Return whether the client of any request has the role ``read``. Counts nothing and never raises."""
        try:
            caller = self.context.authenticate(request.headers.get("authorization", ""))
        except HttpError:
            return False
        return caller is not None and caller.role >= Role.READ

    def cors_headers(self, request: Request) -> dict[str, str]:
        """Return the CORS headers of a response (``search.cors.origins``)."""
        return self._origins.response_headers(request_origin(request))

    def preflight_response(self, request: Request, methods: Iterable[str]) -> Response:
        """Return the response to a CORS preflight request."""
        headers = self._origins.preflight_headers(request_origin(request), methods)
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(methods), **headers})
