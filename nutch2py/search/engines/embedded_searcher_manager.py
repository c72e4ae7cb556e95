"""EmbeddedSearcherManager: the searcher of the embedded index for all threads of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher

COMMIT_CHECK_INTERVAL = 5.0
"""Seconds between checks for newer commits."""


class EmbeddedSearcherManager:
    """One searcher of the embedded index for all threads, as of its last commit some seconds ago.

    The index is opened at the first request, and again after a rebuild. A response keeps the searcher that it started
    with, so all of it is from one commit.
    """

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._lock = threading.Lock()  # of the check, not of searches
        self._searcher: EmbeddedSearcher | None = None
        self._commit: object = None
        self._checked_at = 0.0

    @contextmanager
    def acquire(self) -> Iterator[EmbeddedSearcher]:
        """Yield the searcher of the last commit; other threads may use it, too."""
        yield self._current_searcher()

    def _current_searcher(self) -> EmbeddedSearcher:
        searcher = self._searcher
        if searcher is not None:
            is_due = time.monotonic() - self._checked_at > COMMIT_CHECK_INTERVAL
            if not is_due or not self._lock.acquire(blocking=False):  # another thread checks
                return searcher
        else:
            self._lock.acquire()
        try:
            self._checked_at = time.monotonic()
            self._searcher = searcher = self._newest_searcher()
            return searcher
        finally:
            self._lock.release()

    def _newest_searcher(self) -> EmbeddedSearcher:
        searcher = self._searcher
        if searcher is not None:
            try:
                searcher.index_dir.check_version()
                # Read before the reload, which may load an even newer commit.
                commit = searcher.index_dir.current_commit()
                if commit != self._commit:
                    searcher, self._commit = searcher.reopen(), commit
                return searcher
            except (IndexingError, ValueError, OSError):
                self._searcher = self._commit = None
        return EmbeddedSearcher(self._conf)

    def close(self) -> None:
        """Nothing to close: files are closed with the last searcher of their commit."""
