"""View of the directory of public keys, by which sites verify the crawler's requests."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.signatures.key_directory import DIRECTORY_PATH, build_directory
from nutch2py.fetcher.signatures.request_signer import https_authority, require_agent
from nutch2py.fetcher.signatures.signing_keys import KeyFile, SigningKey, require_cryptography
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.operation import error_response
from nutch2py.rest.http_error import HttpError, describe_publicly


def key_directory_routes(conf: Configuration, authorizer: Authorizer) -> list[Route]:
    """Return the route of the directory, none without ``http.signature.key.file``.

    The file is read for each request: a rotation needs no restart.
    """
    name = conf.get_trimmed("http.signature.key.file")
    if not name:
        return []
    require_cryptography("http.signature.key.file")
    authority, file = https_authority(require_agent(conf)), KeyFile(conf.absolute(name))
    file.read()

    async def show(request: Request) -> Response:
        try:
            authorizer.authorize(request, Role.ANONYMOUS, False)
            keys = await authorizer.thread_limit.run(_read_keys, file)
        except HttpError as error:
            return error_response(error, is_public=True)
        directory = build_directory(keys, authority)
        if request.headers.get("if-none-match") == directory.headers["ETag"]:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": directory.headers["ETag"]})
        return Response(directory.body, headers=directory.headers)

    return [Route(DIRECTORY_PATH, show, methods=["GET"])]


def _read_keys(file: KeyFile) -> list[SigningKey]:
    """Return the keys; the reason of a failure is for the server's log only."""
    try:
        return file.read()
    except ConfigurationError as error:
        describe_publicly(error)  # logs the reason, at most once a minute
        message = "the directory of keys cannot be read now"
        raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, message, {"Retry-After": "60"}) from None
