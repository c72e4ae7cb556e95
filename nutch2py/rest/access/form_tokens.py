"""Form tokens: proof that a form was filled in on a page of this server, which pages of other sites cannot read.

A token is an HMAC under the login of its reader, so it needs no storage: it is valid on each server that knows the
login, and for that login alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

from starlette.requests import Request

FORM_FIELD = "form_token"
"""Field of a form."""
FORM_HEADER = "x-form-token"
"""Header of a request without a form."""
_STEP_SECONDS = 3600
"""Tokens of the same hour are equal, so that a page that did not change stays equal, too."""
_VALID_STEPS = 24


class FormTokens:
    """Creates and checks form tokens.

    Args:
        is_shared: logins are access tokens of 256 random bits, which suffice as a key on every server; else a key of
            this process is added.
    """

    def __init__(self, is_shared: bool) -> None:
        self._key = b"" if is_shared else secrets.token_bytes(32)

    def create(self, request: Request) -> str:
        """Return a token for the login of a request, valid for a day."""
        step = int(time.time()) // _STEP_SECONDS
        return f"{step:x}-{self._sign(request, step)}"

    def is_valid(self, request: Request, token: str) -> bool:
        """Return whether a token belongs to the login of a request and has not expired."""
        try:
            step = int(token.partition("-")[0][:16], 16)
        except ValueError:
            return False
        has_key = bool(self._key or request.headers.get("authorization"))
        is_recent = 0 <= int(time.time()) // _STEP_SECONDS - step < _VALID_STEPS
        if not (has_key and is_recent):
            return False
        expected = f"{step:x}-{self._sign(request, step)}"
        return hmac.compare_digest(token.encode("utf-8", "replace"), expected.encode())

    def _sign(self, request: Request, step: int) -> str:
        login = request.headers.get("authorization", "").encode("utf-8", "replace")
        key = hashlib.sha256(b"nutch2py form\0" + self._key + login).digest()
        return hmac.digest(key, step.to_bytes(8), "sha256")[:16].hex()
