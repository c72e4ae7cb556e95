"""SearchWorkerPool: runs calls of searchers in worker processes, with a bounded queue.

A worker starts with the first call and ends after ``search.worker.idle.seconds`` without one. A thread of its own
starts it and waits for its replies, since a worker ends with the thread that started it. A worker that ends during a
call fails that call only: the next one has a new worker.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import NamedTuple

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError, InputError, NutchError, QueryError, SearchStoppedError
from nutch2py.search.search_worker.search_messages import MAX_RESPONSE_BYTES, SearchCall, SearchReply
from nutch2py.search.search_worker.search_metrics import WORKER, SearchMetrics
from nutch2py.support.worker_process import WorkerExitedError, WorkerProcess, WorkerSettings, encode_frame

CPU_SECONDS_PROPERTY = "search.worker.cpu.seconds"
_WAIT_FACTOR, _MIN_WAIT_SECONDS = 3.0, 30.0  # time that a caller waits, as a multiple of the limit of CPU time
_WALL_FACTOR = 3.0  # time after which a worker that uses less CPU time is stopped, as a multiple of that
_KILL_GRACE_SECONDS = 2.0  # between the worker's own alarm and the kill
_START_TIMEOUT_SECONDS = 120.0
_BUSY_MESSAGE = "Too many expensive searches are running. Try again later, or use fewer words."
_TOO_LONG_MESSAGE = "The search takes too long. Use fewer words."
_ENDED_MESSAGE = "The search ended unexpectedly. Try again."
_ERRORS: dict[str, type[NutchError]] = {
    error.__name__: error for error in (ConfigurationError, IndexingError, InputError)
}


class _PendingCall(NamedTuple):
    call: SearchCall
    reply: Future[SearchReply]


class SearchWorkerPool:
    """Workers for the threads of a server."""

    def __init__(self, conf: Configuration, metrics: SearchMetrics) -> None:
        self._conf, self._metrics = conf, metrics
        self._max_threads = conf.get_int("search.worker.processes", 1)
        self._max_pending = conf.get_int("search.worker.queue", 8)
        self._cpu_seconds = conf.get_float(CPU_SECONDS_PROPERTY, 10.0)
        self._idle_seconds = conf.get_float("search.worker.idle.seconds", 300.0)
        self._changed = threading.Condition()
        self._queue: deque[_PendingCall] = deque()
        self._workers: set[WorkerProcess] = set()
        self._threads = self._idle_threads = self._pending = 0
        self._is_closed = False

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the running workers."""
        with self._changed:
            return [worker.pid for worker in self._workers]

    def run(self, call: SearchCall) -> SearchReply:
        """Return the reply to a call.

        Raises:
            SearchStoppedError: Too many calls wait, the call waited too long, or its worker ended.
            QueryError: The call needs more CPU time than a search may take.
            NutchError: What the searcher raised.
        """
        seconds = max(self._cpu_seconds * _WAIT_FACTOR, _MIN_WAIT_SECONDS)
        call.cpu_seconds, call.wall_seconds = self._cpu_seconds, seconds * _WALL_FACTOR
        pending = _PendingCall(call, Future())
        started, outcome = time.monotonic(), "stopped"
        self._submit(pending)
        try:
            reply = pending.reply.result(seconds)
            outcome = "error" if reply.error or reply.traceback else "ok"
        except FutureTimeoutError:
            pending.reply.cancel()
            raise self._make_busy_error(f"no result after {seconds:g} s") from None
        finally:
            self._change_pending(-1)
            self._metrics.count_search(WORKER, outcome, time.monotonic() - started)
        _raise_error(reply)
        return reply

    def close(self) -> None:
        """End all workers; their calls fail."""
        with self._changed:
            self._is_closed = True
            for worker in self._workers:
                worker.kill()
            for pending in self._queue:
                if pending.reply.set_running_or_notify_cancel():
                    pending.reply.set_exception(SearchStoppedError("the server stops", _ENDED_MESSAGE))
            self._queue.clear()
            self._changed.notify_all()

    def _submit(self, pending: _PendingCall) -> None:
        with self._changed:
            if self._is_closed or self._pending >= self._max_pending:
                self._metrics.count_search(WORKER, "rejected", 0.0)
                raise self._make_busy_error(f"{self._pending} of them run or wait (search.worker.queue)")
            self._pending += 1
            self._metrics.set_waiting(self._pending)
            self._queue.append(pending)
            if self._idle_threads < len(self._queue) and self._threads < self._max_threads:
                self._threads += 1
                threading.Thread(target=self._serve, name="search-worker", daemon=True).start()
            self._changed.notify()

    def _change_pending(self, change: int) -> None:
        with self._changed:
            self._pending += change
            self._metrics.set_waiting(self._pending)

    @staticmethod
    def _make_busy_error(reason: str) -> SearchStoppedError:
        return SearchStoppedError(f"too many expensive searches: {reason}", _BUSY_MESSAGE)

    # the thread of a worker

    def _serve(self) -> None:
        """Run calls in one worker until there are none for some time."""
        worker: _SearchWorker | None = None
        try:
            while (pending := self._next_call()) is not None:
                if worker is not None and not worker.is_alive():  # it died while idle: this call is not the cause
                    self._end(worker)
                    worker = None
                try:
                    worker = worker or self._start()
                    if pending.reply.set_running_or_notify_cancel():
                        pending.reply.set_result(self._exchange(worker, pending))
                except Exception as error:  # noqa: BLE001 - the caller raises it
                    if not pending.reply.cancelled():
                        pending.reply.set_exception(error)
                    if worker is not None:
                        self._end(worker)
                    worker = None
        finally:
            if worker is not None:
                self._end(worker)

    def _next_call(self) -> _PendingCall | None:
        """Return the next call that still waits; None when the thread ends."""
        with self._changed:
            while not self._is_closed:
                if self._queue:
                    return self._queue.popleft()
                self._idle_threads += 1
                is_notified = self._changed.wait(self._idle_seconds)
                self._idle_threads -= 1
                if not is_notified and not self._queue:
                    break
            self._threads -= 1
            return None

    def _exchange(self, worker: _SearchWorker, pending: _PendingCall) -> SearchReply:
        used = worker.used_seconds()
        try:
            return worker.exchange(pending.call)
        finally:
            self._metrics.count_cpu(worker.used_seconds() - used)

    def _start(self) -> _SearchWorker:
        worker = _SearchWorker()
        with self._changed:
            self._workers.add(worker)
            if self._is_closed:
                worker.kill()
        self._metrics.count_start()
        try:
            worker.open(self._conf)
        except BaseException:
            self._end(worker)
            raise
        return worker

    def _end(self, worker: WorkerProcess) -> None:
        worker.terminate()
        with self._changed:
            self._workers.discard(worker)


class _SearchWorker(WorkerProcess):
    """A running worker."""

    def __init__(self) -> None:
        super().__init__("nutch2py.search.search_worker.search_worker", "run_worker", MAX_RESPONSE_BYTES)

    def open(self, conf: Configuration) -> None:
        """Send the configuration, and wait until the worker is ready."""
        self.send(encode_frame(WorkerSettings.from_conf(conf)))
        self._receive_reply(_START_TIMEOUT_SECONDS)

    def exchange(self, call: SearchCall) -> SearchReply:
        """Return the reply to a call; raise an error after which the worker is of no use."""
        self.send(encode_frame(call))
        try:
            return self._receive_reply(call.wall_seconds + _KILL_GRACE_SECONDS)
        except _CpuLimitError:
            raise QueryError(
                f"a search took more than {call.cpu_seconds:g} s of CPU time ({CPU_SECONDS_PROPERTY})",
                _TOO_LONG_MESSAGE,
            ) from None

    def _receive_reply(self, seconds: float) -> SearchReply:
        try:
            return msgspec.msgpack.decode(self.receive(seconds), type=SearchReply)
        except WorkerExitedError as error:
            if error.exit_code == -signal.SIGPROF:
                raise _CpuLimitError from None
            if error.exit_code == -signal.SIGALRM:
                raise self._make_timeout_error() from None
            raise SearchStoppedError(
                f"the process of expensive searches ended ({error.reason})", _ENDED_MESSAGE
            ) from None
        except TimeoutError:
            raise self._make_timeout_error() from None
        except msgspec.MsgspecError as error:
            message = f"the process of expensive searches sent an invalid reply: {error}"
            raise SearchStoppedError(message, _ENDED_MESSAGE) from error

    @staticmethod
    def _make_timeout_error() -> SearchStoppedError:
        return SearchStoppedError(
            f"an expensive search had no result in {_WALL_FACTOR:g} times its CPU time ({CPU_SECONDS_PROPERTY})",
            _BUSY_MESSAGE,
        )


class _CpuLimitError(Exception):
    """The kernel has ended the worker after the CPU time of a call."""


def _raise_error(reply: SearchReply) -> None:
    """Raise the error of a reply, as the searcher raised it in the worker."""
    if reply.traceback:
        raise RuntimeError(f"an expensive search failed in its process:\n{reply.traceback}")
    if reply.error is not None:
        name, message, public_message = reply.error
        if name == QueryError.__name__:
            raise QueryError(message, public_message)
        raise _ERRORS.get(name, IndexingError)(message)
