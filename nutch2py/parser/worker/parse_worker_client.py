"""Parsing in a process that can be ended: what a task uses to parse rows.

Whatever the web sent is read in a child (:mod:`nutch2py.parser.worker.parse_worker`), one a task, started at the first page (about
0.2 s) and kept: charset, tree, links, filters and signature. C code may run for ever, take all memory or crash without
coming back to the interpreter, so nothing less than a process holds it. The task sends the cells of some rows ahead, so
that the child need not wait, and gets what changes in them.

A page that takes more than ``parser.timeout`` seconds or more memory than ``parser.child.memory.mb``, or that crashes
the child, gets the status FAILED/EXCEPTION with the reason, the child is started anew, and the next page is parsed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from nutch2py import errors
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.interfaces import Outlink, Parse
from nutch2py.parser.row_parser import ParseOutcome, RowParser
from nutch2py.parser.sitemap.sitemap_parser import SitemapEntry
from nutch2py.parser.sitemap.sitemap_row_parser import SitemapRowParser
from nutch2py.parser.worker.domain_budget import DomainTimeBudget
from nutch2py.parser.worker.parse_worker import (
    LENGTH_PREFIX,
    MAX_RESPONSE_BYTES,
    ParseRequest,
    ParseResponse,
    ParseWorkerSettings,
    encode_frame,
    failed_parse_status,
    failed_row,
)
from nutch2py.records.record import Field, Mutation
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import warn
from nutch2py.url.keys import unreverse_url

T = TypeVar("T")
_MAX_PIPELINED_PAGES = 16  # pages sent before the first of them is answered
_MAX_PIPELINED_BYTES = 1 << 20
_PIPE_BYTES = 1 << 20  # bytes that a pipe holds, where the system lets one choose
_READ_BYTES = 1 << 17  # bytes; room for more would be taken from the system, and given back, with each read
_KILL_GRACE_SECONDS = 3.0  # seconds after its own alarm at which the child is killed
_START_TIMEOUT_SECONDS = 120.0
_BOOTSTRAP_CODE = "import json,sys; sys.path[:] = json.loads(sys.argv[1]); from nutch2py.parser.worker.parse_worker import run_worker; run_worker()"


class ParsedRow(NamedTuple):
    """A row with what its parse changes. ``sitemap_entries``: what a sitemap says of other rows."""

    key: str
    page: WebPage
    mutation: Mutation | None
    outcome: ParseOutcome
    sitemap_entries: dict[str, SitemapEntry]


class ParseWorkerClient:
    """Parses rows in a child process. Not to be shared by threads: the child ends with the thread that started it.

    ``sitemaps``: rows are sitemaps. ``fields``: what rows must have been read with.
    """

    def __init__(self, conf: Configuration, *, sitemaps: bool = False) -> None:
        parsing = RowParser(conf)  # what is wrong with the configuration is told here
        self.fields: frozenset[Field[Any]] = SitemapRowParser(conf, parsing).fields if sitemaps else parsing.fields
        self.signature = parsing.signature
        self._conf = conf
        self._request_kind = "sitemap" if sitemaps else "page"
        self._timeout_property = "sitemap.parser.timeout" if sitemaps else "parser.timeout"
        self._domain_budget = DomainTimeBudget(conf, max(0.0, conf.get_float(self._timeout_property, 30.0)))
        self._worker: _WorkerProcess | None = None

    def parse_rows(self, rows: Iterable[tuple[str, WebPage]]) -> Iterator[ParsedRow]:
        """Parse rows in order. ``rows`` is read a few pages ahead of what is yielded; the records stay as they are."""
        requests = (
            (
                (key, page),
                ParseRequest(
                    self._request_kind, key, page.current_cells(self.fields), self._domain_budget.allowed_seconds(key)
                ),
            )
            for key, page in rows
        )
        for (key, page), answer in self._exchange(requests):
            if isinstance(answer, str):
                mutation, outcome = failed_row(unreverse_url(key), answer)
                yield ParsedRow(key, page, mutation, outcome, {})
                continue
            assert answer.outcome is not None
            changes = Mutation(answer.puts, answer.deletes, answer.cleared)
            changed = changes if any(changes) else None
            listed = dict(each.to_pair() for each in answer.sitemap_entries)
            yield ParsedRow(key, page, changed, answer.outcome.to_outcome(), listed)

    def parse_row(self, key: str, page: WebPage) -> ParseOutcome:
        """Parse one row and set in ``page`` what the ParserJob writes."""
        (row,) = self.parse_rows([(key, page)])
        if row.mutation is not None:
            page.apply_mutation(row.mutation)
        return row.outcome

    def parse(self, url: str, page: WebPage) -> Parse:
        """Return the parse of a page alone; metadata that the parser sets is in ``page``."""
        request = ParseRequest("parse", url, page.current_cells(self.fields), self._domain_budget.page_seconds)
        ((_, answer),) = self._exchange(iter([(url, request)]))
        if isinstance(answer, str):
            return Parse("", "", (), *failed_parse_status(answer))
        assert answer.parse is not None
        page.apply_mutation(Mutation(answer.puts, answer.deletes, answer.cleared))
        text, title, links, major, minor, args, metadata = msgspec.structs.astuple(answer.parse)
        return Parse(text, title, [Outlink(*link) for link in links], major, minor, args, metadata)

    def close(self) -> None:
        """End the child, if there is one; the next page starts another."""
        if self._worker is not None:
            self._worker.terminate()
            self._worker = None

    def _exchange(self, requests: Iterator[tuple[T, ParseRequest]]) -> Iterator[tuple[T, ParseResponse | str]]:
        """Yield each request's tag with its answer, or with the reason why there is none."""
        waiting: deque[_PendingRequest[T]] = deque()
        ahead, more = 0, True
        began = time.monotonic()
        try:
            while True:
                while more and (not waiting or (len(waiting) < _MAX_PIPELINED_PAGES and ahead < _MAX_PIPELINED_BYTES)):
                    found = next(requests, None)
                    if found is None:
                        more = False
                        break
                    packed = encode_frame(found[1])
                    if not waiting and self._worker is not None and not self._worker.is_alive():
                        self.close()  # it died while it had nothing to do: this page is not to blame
                    self._running_worker().send(packed)
                    if not waiting:
                        began = time.monotonic()
                    waiting.append(_PendingRequest(found[0], found[1], packed))
                    ahead += len(packed)
                if not waiting:
                    return
                tag, request, packed = waiting[0]
                answer = self._receive_response(request.timeout_seconds)
                waiting.popleft()
                ahead -= len(packed)
                before, began = began, time.monotonic()
                if request.kind != "parse":
                    self._domain_budget.record(request.key_or_url, began - before)
                if isinstance(answer, str) or answer.is_last:
                    self.close()
                    for each in waiting:
                        if each.request.kind != "parse":
                            each.request.timeout_seconds = self._domain_budget.allowed_seconds(each.request.key_or_url)
                        self._running_worker().send(encode_frame(each.request))
                    began = time.monotonic()
                yield tag, answer
        finally:
            if waiting:  # given up: the answers that come are nobody's
                self.close()

    def _receive_response(self, seconds: float) -> ParseResponse | str:
        assert self._worker is not None
        try:
            answer = self._worker.receive(seconds + _KILL_GRACE_SECONDS if seconds else None)
        except TimeoutError:
            return self._timeout_reason(seconds)
        except _WorkerExitedError as error:
            return self._timeout_reason(seconds) if error.exit_code == -signal.SIGALRM else str(error)
        return _check_response(answer)

    def _timeout_reason(self, seconds: float) -> str:
        name = (
            self._timeout_property
            if seconds == self._domain_budget.page_seconds
            else "parser.domain.seconds: others took too long"
        )
        return f"more than {seconds:g} s ({name})"

    def _running_worker(self) -> _WorkerProcess:
        if self._worker is None:
            self._worker = _WorkerProcess(self._conf)
        return self._worker


class _PendingRequest(NamedTuple, Generic[T]):
    """A request that has been sent and has no answer yet."""

    tag: T
    request: ParseRequest
    frame: bytes


class _WorkerExitedError(Exception):
    """The child is gone. ``exit_code``: its exit code, negative for a signal."""

    def __init__(self, code: int, memory: int) -> None:
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        super().__init__(f"the parser process ended ({name}); it may take {memory} MB (parser.child.memory.mb)")
        self.exit_code = code


class _WorkerProcess:
    """A child that has said that it is ready."""

    def __init__(self, conf: Configuration) -> None:
        self._max_memory_mb = conf.get_int("parser.child.memory.mb", 1024)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOTSTRAP_CODE, json.dumps([os.path.abspath(p) for p in sys.path])],  # noqa: PTH100
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=_PIPE_BYTES,
        )
        self.terminate = weakref.finalize(self, _terminate, self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._sink, False)
        self._to_send: deque[memoryview] = deque()
        self._received = bytearray()
        self._poll = select.poll()  # select() knows no descriptor above 1023, and a fetcher has many
        self._poll.register(self._source, select.POLLIN)
        folders = [str(folder) for folder in conf.conf_dirs]
        self.send(encode_frame(ParseWorkerSettings(conf.raw_properties(), folders, str(conf.base_dir), os.getpid())))
        try:
            _check_response(self.receive(_START_TIMEOUT_SECONDS))
        except (TimeoutError, _WorkerExitedError) as error:
            self.terminate()
            reason = str(error) or f"it is not ready after {_START_TIMEOUT_SECONDS:g} s"
            raise NutchError(f"cannot parse: {reason}: raise the limit, or see that the machine has memory") from None
        except BaseException:
            self.terminate()
            raise

    def is_alive(self) -> bool:
        """Tell whether the process is there."""
        return self._process.poll() is None

    def send(self, frame: bytes) -> None:
        """Send a frame as far as the pipe takes it; the rest goes while an answer is waited for."""
        if not self._to_send:
            self._poll.register(self._sink, select.POLLOUT)
        self._to_send.append(memoryview(frame))
        self._send_pending()

    def receive(self, seconds: float | None) -> ParseResponse:
        """Return the next answer; raise TimeoutError, or _Ended when the child is gone before."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            if len(self._received) >= LENGTH_PREFIX.size:
                (length,) = LENGTH_PREFIX.unpack_from(self._received)
                if length > MAX_RESPONSE_BYTES:
                    self._process.kill()
                    raise _WorkerExitedError(self._process.wait(), self._max_memory_mb)
                end = LENGTH_PREFIX.size + length
                if len(self._received) >= end:
                    with memoryview(self._received) as view:
                        answer = msgspec.msgpack.decode(view[LENGTH_PREFIX.size : end], type=ParseResponse)
                    del self._received[:end]
                    return answer
            wait = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            ready = self._poll.poll(wait)
            if not ready:
                raise TimeoutError
            for descriptor, _ in ready:
                if descriptor == self._sink:
                    self._send_pending()
                elif not self._receive_available():
                    raise _WorkerExitedError(self._process.wait(), self._max_memory_mb)

    def _receive_available(self) -> bool:
        part = os.read(self._source, _READ_BYTES)
        self._received += part
        return bool(part)

    def _send_pending(self) -> None:
        try:
            while self._to_send:
                view = self._to_send[0]
                written = os.write(self._sink, view[: 1 << 16])
                if written < len(view):
                    self._to_send[0] = view[written:]
                else:
                    self._to_send.popleft()
        except BlockingIOError:
            return
        except BrokenPipeError:  # it is gone; what it said before is still to be read
            self._to_send.clear()
        self._poll.unregister(self._sink)


def _check_response(answer: ParseResponse) -> ParseResponse:
    """Say what the child has printed, which are warnings, and raise the error that no page is to blame for."""
    for line in answer.printed_warnings.splitlines():
        warn(line.removeprefix("WARN "))
    if answer.error is not None:
        name, text = answer.error
        kind = getattr(errors, name, NutchError)
        raise kind(text)
    return answer


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()
