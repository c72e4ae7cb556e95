"""Reads the body of a request within the size limit ``rest.body.max.bytes``."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request

from nutch2py.conf.configuration import Configuration
from nutch2py.rest.http_error import HttpError


async def read_body(request: Request, conf: Configuration) -> bytes:
    """Return the body of a request; raise HttpError when it is longer than ``rest.body.max.bytes``."""
    max_bytes = conf.get_int("rest.body.max.bytes", 1 << 20)
    message = f"a body has at most {max_bytes:,} bytes (rest.body.max.bytes)"
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > max_bytes:
        raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > max_bytes:
                raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
            parts.append(part)
    except ClientDisconnect:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the request body is incomplete") from None
    return b"".join(parts)
