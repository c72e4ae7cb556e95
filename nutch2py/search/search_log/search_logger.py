"""Logs searches and clicks for the search page and the search API (``search.log``)."""

from __future__ import annotations

import hmac
import secrets
import threading

from nutch2py.conf.configuration import Configuration
from nutch2py.records.document import clean_text
from nutch2py.search.search_log.logged_search import (
    MAX_QUERY_LENGTH,
    LoggedClick,
    LoggedSearch,
    SearchSource,
    new_search_id,
    shorten_ids,
)
from nutch2py.search.search_log.result_token import ResultToken, ResultTokenSigner
from nutch2py.search.search_log.search_log_store import LogRow
from nutch2py.search.search_log.search_log_writer import SearchLogWriter
from nutch2py.support.clock import MS_PER_DAY, now_ms

MAX_SESSION_LENGTH = 64
MAX_DWELL_MS = MS_PER_DAY


class SessionHasher:
    """Hashes session ids with a random salt that changes every day (UTC) and is never stored.

    The same session has the same hash within a day. Without the salt, the session of a hash cannot be found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._day, self._salt = -1, b""

    def hash(self, session: str) -> str:
        """Return the hash of a session id, "" for none or one that is too long."""
        if not session or len(session) > MAX_SESSION_LENGTH:
            return ""
        day = now_ms() // MS_PER_DAY
        with self._lock:
            if day != self._day:
                self._day, self._salt = day, secrets.token_bytes(32)
            salt = self._salt
        return hmac.digest(salt, session.encode("utf-8", "replace"), "sha256")[:8].hex()


class SearchLogger:
    """Logs searches and clicks through a background writer: no method waits for the table."""

    def __init__(self, conf: Configuration) -> None:
        self._writer = SearchLogWriter(conf)
        self._signer, self._sessions = ResultTokenSigner(), SessionHasher()

    @classmethod
    def from_conf(cls, conf: Configuration) -> SearchLogger | None:
        """Return the logger of a configuration; None when ``search.log`` is off."""
        return cls(conf) if conf.get_bool("search.log", False) else None

    def log_search(
        self, query: str, total: int, start: int, ids: list[str], source: SearchSource, session: str = ""
    ) -> str:
        """Log a page of results; return its token for clicks, "" if there are no results or the log is overloaded.

        Args:
            query: The query as the user wrote it.
            total: Number of matching documents.
            start: Number of results before the first shown one.
            ids: Document ids of the shown results, in order.
            source: Search page or search API.
            session: Session id from the page, "" for none.
        """
        if not query:
            return ""
        search = LoggedSearch(
            query=clean_text(query)[:MAX_QUERY_LENGTH],
            total=total,
            start=start,
            shown=len(ids),
            ids=shorten_ids(ids),
            source=source,
            session=self._sessions.hash(session),
        )
        search_id = new_search_id()
        if not self._writer.add(LogRow(search_id, 0, search)) or not ids:
            return ""
        return self._signer.encode(ResultToken(search_id, start, len(ids)))

    def log_click(self, token_text: str, position: int, dwell_ms: int | None = None, session: str = "") -> bool:
        """Log a click; return False for an unknown or expired token or a position that was not shown.

        A second click on the same result replaces the first one.
        """
        token = self._signer.decode(token_text)
        if token is None or not token.has_position(position):
            return False
        dwell = None if dwell_ms is None else min(dwell_ms, MAX_DWELL_MS)
        click = LoggedClick(position=position, dwell_ms=dwell, session=self._sessions.hash(session))
        self._writer.add(LogRow(token.search_id, position, click))
        return True

    def close(self) -> None:
        """Write the queued entries."""
        self._writer.close()
