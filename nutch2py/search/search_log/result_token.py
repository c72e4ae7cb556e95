"""Tokens of shown results: a click is logged only for results that this server has shown."""

from __future__ import annotations

import hmac
import re
import secrets
from typing import NamedTuple

from nutch2py.search.search_log.logged_search import search_time
from nutch2py.support.clock import MS_PER_DAY, now_ms

_TOKEN = re.compile(r"([0-9]{13}-[0-9a-f]{12})\.([0-9]{1,6})\.([0-9]{1,3})\.([0-9a-f]{32})", re.ASCII)
MAX_TOKEN_LENGTH = 80


class ResultToken(NamedTuple):
    """Identifies shown results: the id of the search, and the positions after ``start``."""

    search_id: str
    start: int
    shown: int

    def has_position(self, position: int) -> bool:
        """Return whether a result with this position was shown."""
        return self.start < position <= self.start + self.shown


class ResultTokenSigner:
    """Signs tokens with a random key that only this process knows; tokens are valid for a day."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def encode(self, token: ResultToken) -> str:
        """Return the signed text of a token."""
        payload = f"{token.search_id}.{token.start}.{token.shown}"
        return f"{payload}.{self._sign(payload)}"

    def decode(self, text: str) -> ResultToken | None:
        """Return the token; None for one that is forged, expired, or of another process."""
        match = _TOKEN.fullmatch(text) if len(text) <= MAX_TOKEN_LENGTH else None
        if match is None or not hmac.compare_digest(self._sign(text.rpartition(".")[0]), match[4]):
            return None
        token = ResultToken(match[1], int(match[2]), int(match[3]))
        return token if now_ms() - search_time(token.search_id) <= MS_PER_DAY else None

    def _sign(self, payload: str) -> str:
        return hmac.digest(self._key, payload.encode(), "sha256")[:16].hex()
