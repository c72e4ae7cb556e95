"""Writes the search log in a thread of its own, so that no response waits for the table."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact
from nutch2py.records.webpage import DerivedRow
from nutch2py.search.search_log.search_log_store import LogRow, delete_old_rows, open_log_store, write_rows
from nutch2py.support.reporting import warn
from nutch2py.table import DataStore

_MAX_QUEUED = 2_000
"""Rows that wait to be written; further ones are dropped."""
_MAX_ROWS_PER_WRITE = 500
_COLLECT_SECONDS = 1.0
"""Time for which rows are collected before they are written together."""
_PRUNE_EVERY = 1_000
"""Rows between two deletions of old rows."""
_CLOSE_SECONDS = 10.0
RETRY_SECONDS = 5.0
"""Time after which rows that could not be written are written again."""


class SearchLogWriter:
    """Queue and thread that write rows. The thread starts with the first row.

    While the table cannot be written, because it is unavailable or its disk is full, rows wait.

    Attributes:
        dropped: Number of rows that were not written because the queue was full, or because the table could not be
            written before the writer was closed.
    """

    def __init__(
        self,
        conf: Configuration,
        open_table: Callable[[Configuration], DataStore[DerivedRow]] = open_log_store,
    ) -> None:
        self._conf, self._open_table = conf, open_table
        self._keep_days = conf.get_float("search.log.keep.days", 90.0)
        self._max_rows = conf.get_int("search.log.keep.entries", 100_000)
        self._queue = queue.Queue[LogRow | None](_MAX_QUEUED)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._written = _PRUNE_EVERY  # so that the first write deletes old rows
        self._has_warned = False
        self.dropped = self._reported = 0

    def add(self, row: LogRow) -> bool:
        """Queue a row without waiting; return False if it was dropped."""
        if self._closing.is_set():
            return False
        try:
            self._queue.put_nowait(row)
        except queue.Full:
            self.dropped += 1
            return False
        if self._thread is None:
            self._start()
        return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="search log", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Write the queued rows and stop the thread; log how many rows were lost.

        An unavailable table delays this by at most ten seconds.
        """
        self._closing.set()
        with suppress(queue.Full):
            self._queue.put_nowait(None)  # wakes a waiting thread
        if self._thread is None:
            return
        self._thread.join(_CLOSE_SECONDS)
        waiting = sum(row is not None for row in list(self._queue.queue)) if self._thread.is_alive() else 0
        if lost := self.dropped - self._reported + waiting:
            warn(f"{lost:,} entries of the search log were lost")

    def _run(self) -> None:
        rows = list[LogRow]()
        while True:
            rows = rows or self._collect()
            if rows:
                is_last_try = self._closing.is_set()
                if self._write(rows):
                    rows = []
                elif is_last_try:
                    self.dropped += len(rows)
                    rows = []
                else:
                    self._closing.wait(RETRY_SECONDS)
            elif self._closing.is_set() and self._queue.empty():
                return

    def _collect(self) -> list[LogRow]:
        """Return rows that arrive within a second; none if the queue stays empty."""
        rows = list[LogRow]()
        end = time.monotonic() + _COLLECT_SECONDS
        while len(rows) < _MAX_ROWS_PER_WRITE:
            try:
                wait = 0.0 if self._closing.is_set() else end - time.monotonic()
                row = self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if row is None:
                break
            rows.append(row)
        return rows

    def _write(self, rows: list[LogRow]) -> bool:
        """Write rows, again if need be: a row that is written twice is the same; return whether they are written."""
        try:
            store = self._open_table(self._conf)
            try:
                if not store.exists():
                    store.create()
                write_rows(store, rows)
                self._written += len(rows)
                if self._written >= _PRUNE_EVERY:
                    delete_old_rows(store, self._keep_days, self._max_rows)
                    self._written = 0
            finally:
                store.close()
            if self._has_warned:
                self._has_warned, dropped = False, self.dropped - self._reported
                self._reported = self.dropped
                warn(f"the search log is written again; {dropped:,} entries were dropped")
        except Exception as error:  # noqa: BLE001 - the log must never stop the server
            if not self._has_warned:
                self._has_warned = True
                reason = redact(str(error), self._conf.secret_values())
                warn(f"cannot write the search log ({reason}): up to {_MAX_QUEUED:,} entries wait until it is possible")
            return False
        return True
