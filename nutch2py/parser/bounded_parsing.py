"""Parsing in a process that can be ended: what a task uses to parse rows.

Whatever the web sent is read in a child (:mod:`nutch2py.parser.child`), one a task, started at the first page (about
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
from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink, Parse
from nutch2py.errors import NutchError
from nutch2py.parser.child import LENGTH, MAX_ANSWER, Answer, Request, Settings, ended, failed_status, frame
from nutch2py.parser.parsing import ParseOutcome, Parsing
from nutch2py.parser.patience import Patience
from nutch2py.parser.sitemap import SitemapEntry
from nutch2py.parser.sitemap_parsing import SitemapParsing
from nutch2py.record import Field, Mutation
from nutch2py.reporting import warn
from nutch2py.url.keys import unreverse_url
from nutch2py.webpage import WebPage

T = TypeVar("T")
_AHEAD = 16  # pages sent before the first of them is answered
_AHEAD_BYTES = 1 << 20
_PIPE = 1 << 20  # bytes that a pipe holds, where the system lets one choose
_READ = 1 << 17  # bytes; room for more would be taken from the system, and given back, with each read
_GRACE = 3.0  # seconds after its own alarm at which the child is killed
_START_SECONDS = 120.0
_START = "import json,sys; sys.path[:] = json.loads(sys.argv[1]); from nutch2py.parser.child import serve; serve()"


class ParsedRow(NamedTuple):
    """A row with what its parse changes. ``listed``: what a sitemap says of other rows."""

    key: str
    page: WebPage
    mutation: Mutation | None
    outcome: ParseOutcome
    listed: dict[str, SitemapEntry]


class BoundedParsing:
    """Parses rows in a child process. Not to be shared by threads: the child ends with the thread that started it.

    ``sitemaps``: rows are sitemaps. ``fields``: what rows must have been read with.
    """

    def __init__(self, conf: Configuration, *, sitemaps: bool = False) -> None:
        parsing = Parsing(conf)  # what is wrong with the configuration is told here
        self.fields: frozenset[Field[Any]] = SitemapParsing(conf, parsing).fields if sitemaps else parsing.fields
        self.signature = parsing.signature
        self._conf = conf
        self._work = "sitemap" if sitemaps else "page"
        self._limit_name = "sitemap.parser.timeout" if sitemaps else "parser.timeout"
        self._patience = Patience(conf, max(0.0, conf.get_float(self._limit_name, 30.0)))
        self._child: _Child | None = None

    def process_all(self, rows: Iterable[tuple[str, WebPage]]) -> Iterator[ParsedRow]:
        """Parse rows in order. ``rows`` is read a few pages ahead of what is yielded; the records stay as they are."""
        requests = (
            ((key, page), Request(self._work, key, page.current(self.fields), self._patience.seconds(key)))
            for key, page in rows
        )
        for (key, page), answer in self._answers(requests):
            if isinstance(answer, str):
                mutation, outcome = ended(unreverse_url(key), answer)
                yield ParsedRow(key, page, mutation, outcome, {})
                continue
            assert answer.outcome is not None
            changes = Mutation(answer.puts, answer.deletes, answer.cleared)
            changed = changes if any(changes) else None
            listed = dict(each.pair() for each in answer.listed)
            yield ParsedRow(key, page, changed, answer.outcome.outcome(), listed)

    def process(self, key: str, page: WebPage) -> ParseOutcome:
        """Parse one row and set in ``page`` what the ParserJob writes."""
        (row,) = self.process_all([(key, page)])
        if row.mutation is not None:
            page.apply(row.mutation)
        return row.outcome

    def parse(self, url: str, page: WebPage) -> Parse:
        """Return the parse of a page alone; metadata that the parser sets is in ``page``."""
        request = Request("parse", url, page.current(self.fields), self._patience.whole)
        ((_, answer),) = self._answers(iter([(url, request)]))
        if isinstance(answer, str):
            return Parse("", "", (), *failed_status(answer))
        assert answer.parse is not None
        page.apply(Mutation(answer.puts, answer.deletes, answer.cleared))
        text, title, links, major, minor, args, metadata = msgspec.structs.astuple(answer.parse)
        return Parse(text, title, [Outlink(*link) for link in links], major, minor, args, metadata)

    def close(self) -> None:
        """End the child, if there is one; the next page starts another."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _answers(self, requests: Iterator[tuple[T, Request]]) -> Iterator[tuple[T, Answer | str]]:
        """Yield each request's tag with its answer, or with the reason why there is none."""
        waiting: deque[_Waiting[T]] = deque()
        ahead, more = 0, True
        began = time.monotonic()
        try:
            while True:
                while more and (not waiting or (len(waiting) < _AHEAD and ahead < _AHEAD_BYTES)):
                    found = next(requests, None)
                    if found is None:
                        more = False
                        break
                    packed = frame(found[1])
                    if not waiting and self._child is not None and not self._child.alive():
                        self.close()  # it died while it had nothing to do: this page is not to blame
                    self._started().send(packed)
                    if not waiting:
                        began = time.monotonic()
                    waiting.append(_Waiting(found[0], found[1], packed))
                    ahead += len(packed)
                if not waiting:
                    return
                tag, request, packed = waiting[0]
                answer = self._answer(request.seconds)
                waiting.popleft()
                ahead -= len(packed)
                before, began = began, time.monotonic()
                if request.work != "parse":
                    self._patience.took(request.name, began - before)
                if isinstance(answer, str) or answer.last:
                    self.close()
                    for each in waiting:
                        if each.request.work != "parse":
                            each.request.seconds = self._patience.seconds(each.request.name)
                        self._started().send(frame(each.request))
                    began = time.monotonic()
                yield tag, answer
        finally:
            if waiting:  # given up: the answers that come are nobody's
                self.close()

    def _answer(self, seconds: float) -> Answer | str:
        assert self._child is not None
        try:
            answer = self._child.receive(seconds + _GRACE if seconds else None)
        except TimeoutError:
            return self._too_long(seconds)
        except _Ended as error:
            return self._too_long(seconds) if error.code == -signal.SIGALRM else str(error)
        return _told(answer)

    def _too_long(self, seconds: float) -> str:
        name = self._limit_name if seconds == self._patience.whole else "parser.domain.seconds: others took too long"
        return f"more than {seconds:g} s ({name})"

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._conf)
        return self._child


class _Waiting(NamedTuple, Generic[T]):
    """A request that has been sent and has no answer yet."""

    tag: T
    request: Request
    packed: bytes


class _Ended(Exception):
    """The child is gone. ``code``: its exit code, negative for a signal."""

    def __init__(self, code: int, memory: int) -> None:
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        super().__init__(f"the parser process ended ({name}); it may take {memory} MB (parser.child.memory.mb)")
        self.code = code


class _Child:
    """A child that has said that it is ready."""

    def __init__(self, conf: Configuration) -> None:
        self._memory = conf.get_int("parser.child.memory.mb", 1024)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps([os.path.abspath(p) for p in sys.path])],  # noqa: PTH100
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=_PIPE,
        )
        self.end = weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._sink, False)
        self._to_send: deque[memoryview] = deque()
        self._received = bytearray()
        self._poll = select.poll()  # select() knows no descriptor above 1023, and a fetcher has many
        self._poll.register(self._source, select.POLLIN)
        folders = [str(folder) for folder in conf.folders]
        self.send(frame(Settings(conf.raw(), folders, str(conf.base), os.getpid())))
        try:
            _told(self.receive(_START_SECONDS))
        except (TimeoutError, _Ended) as error:
            self.end()
            reason = str(error) or f"it is not ready after {_START_SECONDS:g} s"
            raise NutchError(f"cannot parse: {reason}: raise the limit, or see that the machine has memory") from None
        except BaseException:
            self.end()
            raise

    def alive(self) -> bool:
        """Tell whether the process is there."""
        return self._process.poll() is None

    def send(self, packed: bytes) -> None:
        """Send a frame as far as the pipe takes it; the rest goes while an answer is waited for."""
        if not self._to_send:
            self._poll.register(self._sink, select.POLLOUT)
        self._to_send.append(memoryview(packed))
        self._write()

    def receive(self, seconds: float | None) -> Answer:
        """Return the next answer; raise TimeoutError, or _Ended when the child is gone before."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            if len(self._received) >= LENGTH.size:
                (length,) = LENGTH.unpack_from(self._received)
                if length > MAX_ANSWER:
                    self._process.kill()
                    raise _Ended(self._process.wait(), self._memory)
                end = LENGTH.size + length
                if len(self._received) >= end:
                    with memoryview(self._received) as view:
                        answer = msgspec.msgpack.decode(view[LENGTH.size : end], type=Answer)
                    del self._received[:end]
                    return answer
            wait = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            ready = self._poll.poll(wait)
            if not ready:
                raise TimeoutError
            for descriptor, _ in ready:
                if descriptor == self._sink:
                    self._write()
                elif not self._read():
                    raise _Ended(self._process.wait(), self._memory)

    def _read(self) -> bool:
        part = os.read(self._source, _READ)
        self._received += part
        return bool(part)

    def _write(self) -> None:
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


def _told(answer: Answer) -> Answer:
    """Say what the child has printed, which are warnings, and raise the error that no page is to blame for."""
    for line in answer.printed.splitlines():
        warn(line.removeprefix("WARN "))
    if answer.refused is not None:
        name, text = answer.refused
        kind = getattr(errors, name, NutchError)
        raise kind(text)
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()
