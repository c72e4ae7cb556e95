"""A process that parses in a parser's stead, and can be ended.

PDF, office and archive formats are read by code that may run for ever, take all memory or crash, without ever coming
back to the interpreter. Parsers that say ``isolated = True`` therefore run in a child: one a task, started at the first
such page (about 0.2 s) and kept. It is killed when a page takes more than ``parser.timeout`` seconds, cannot take more
address space than ``parser.child.memory.mb``, and is started anew after either, after a crash, and after 500 pages.
Pages and parses go through pipes as msgpack, which cannot make a process run what another sends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from typing import IO, Any

from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink, Parse, Parser
from nutch2py.record import Cells, MapField
from nutch2py.webpage import ParseStatusCode, WebPage

_PAGES = 500  # after that many the child is started anew: what a library leaks must not add up
_MAX_ANSWER = 256 << 20  # bytes
_GRACE = 3.0  # seconds after the time limit at which a child whose parent is gone ends by itself
_START = "import json,sys; sys.path[:] = json.loads(sys.argv[1]); from nutch2py.parser.child import serve; serve()"
_LENGTH = struct.Struct("<Q")


class _Lost(Exception):
    """The child is gone, or did not answer in time."""


class ParserChild:
    """The process of one task. Not to be shared by threads."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._timeout = conf.get_float("parser.timeout", 30.0)
        self._process: subprocess.Popen[bytes] | None = None
        self._pages = 0
        self._end: Any = None

    def parse(self, parser: Parser, url: str, page: WebPage) -> Parse:
        """Return what ``parser`` makes of a page, a failure when the child was lost over it."""
        name = f"{type(parser).__module__}.{type(parser).__qualname__}"
        request = _encode([name, url, cells_of(page, parser)])
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        try:
            answer = self._ask(request, deadline)
        except TimeoutError:
            self.close()
            return _failed(f"{type(parser).__name__}: more than {self._timeout:g} s (parser.timeout)")
        except _Lost as error:
            self.close()
            return _failed(f"{type(parser).__name__}: {error}")
        parse, changes, last = answer
        if last:
            self.close()
        for key, value in changes:
            if value is None:
                page.metadata.pop(key, None)
            else:
                page.metadata[key] = value
        text, title, links, major, minor, args, metadata = parse
        return Parse(text, title, [Outlink(*link) for link in links], major, minor, tuple(args), metadata)

    def close(self) -> None:
        """End the child, if there is one; the next page starts another."""
        if self._end is not None:
            self._end()
        self._process, self._end = None, None

    def _ask(self, request: bytes, deadline: float | None) -> Any:
        if self._pages >= _PAGES:
            self.close()
        for attempt in (1, 2):
            process = self._process or self._start()
            assert process.stdin is not None
            try:
                _write(process.stdin, request, deadline)
            except BrokenPipeError:  # it died while it had nothing to do: this page is not to blame
                self.close()
                if attempt == 2:
                    raise _Lost("the parser process does not start") from None
                continue
            break
        self._pages += 1
        return _decode(self._receive(process, deadline))

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps([os.path.abspath(p) for p in sys.path])],  # noqa: PTH100
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._process, self._pages = process, 0
        self._end = weakref.finalize(self, _end, process)
        assert process.stdin is not None
        _write(process.stdin, _encode([self._conf.raw(), [str(folder) for folder in self._conf.folders]]), None)
        return process

    def _receive(self, process: subprocess.Popen[bytes], deadline: float | None) -> bytes:
        (length,) = _LENGTH.unpack(self._read(process, _LENGTH.size, deadline))
        if length > _MAX_ANSWER:
            raise _Lost(f"the parse is larger than {_MAX_ANSWER} bytes")
        return self._read(process, length, deadline)

    def _read(self, process: subprocess.Popen[bytes], length: int, deadline: float | None) -> bytes:
        assert process.stdout is not None
        received = bytearray()
        while len(received) < length:
            _wait(process.stdout, select.POLLIN, deadline)
            part = os.read(process.stdout.fileno(), min(length - len(received), 1 << 20))
            if not part:
                code = process.wait()
                name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                limit = self._conf.get_int("parser.child.memory.mb", 1024)
                raise _Lost(f"the parser process ended ({name}); it may take {limit} MB (parser.child.memory.mb)")
            received += part
        return bytes(received)


def cells_of(page: WebPage, parser: Parser) -> Cells:
    """Return the cells of the fields that a parser reads, as the page stands now."""
    cells: Cells = {}
    for field in parser.fields:
        columns = cells.setdefault(field.family, {})
        value = field.__get__(page, WebPage)
        if isinstance(field, MapField):
            columns.update(value.raw())
        elif value is not None:
            columns[field.qualifier] = field.encode(value)
    return cells


def serve() -> None:
    """Parse what comes through standard input until it ends: the child's side."""
    import resource

    # the answers have a pipe of their own: what a library prints must not get between them
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    properties, folders = _decode(_next(source))
    from pathlib import Path

    from nutch2py.parser.parser_factory import ParserFactory

    conf = Configuration(properties, [Path(folder) for folder in folders])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = conf.get_int("parser.child.memory.mb", 1024) << 20
    if most > 0:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    timeout = conf.get_float("parser.timeout", 30.0)
    factory = ParserFactory(conf)
    for request in iter(lambda: _next(source), b""):
        if timeout > 0:
            signal.setitimer(signal.ITIMER_REAL, timeout + _GRACE)
        answer = _answer(factory, *_decode(request))
        signal.setitimer(signal.ITIMER_REAL, 0)
        sink.write(answer)
        sink.flush()


def _answer(factory: Any, name: str, url: str, cells: Cells) -> bytes:
    parser: Parser = factory.by_class(name)
    page = WebPage(cells, parser.fields)
    last = False
    try:
        parse = parser.parse(url, page)
        return _encode([_plain(parse), [*_changes(page)], last])
    except MemoryError:
        last = True  # whatever is half built may hold the memory
        message = "more memory than parser.child.memory.mb allows"
    except RecursionError:
        message = "nested too deep"
    except Exception as error:  # noqa: BLE001 - whatever a page does to a parser, the job goes on
        message = f"{type(error).__name__}: {error}"[:1000]
    return _encode([_plain(_failed(f"{name.rpartition('.')[2]}: {message}")), [], last])


def _plain(parse: Parse) -> list[Any]:
    return [
        _valid(parse.text),
        _valid(parse.title),
        [(_valid(url), _valid(anchor)) for url, anchor in parse.outlinks],
        int(parse.major),
        int(parse.minor),
        [_valid(argument) for argument in parse.args],
        dict(parse.metadata),
    ]


def _valid(text: str) -> str:
    """Return a text that can be UTF-8: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _changes(page: WebPage) -> Iterator[tuple[str, bytes | None]]:
    mutation = page.mutation()
    if mutation is not None:
        family = WebPage.metadata.family
        for qualifier in mutation.deletes.get(family, ()):
            yield qualifier.decode("utf-8", "replace"), None
        for qualifier, value in mutation.puts.get(family, {}).items():
            yield qualifier.decode("utf-8", "replace"), value


def _failed(message: str) -> Parse:
    return Parse("", "", (), ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (message,))


def _encode(message: Any) -> bytes:
    import msgspec

    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body


def _decode(body: bytes) -> Any:
    import msgspec

    return msgspec.msgpack.decode(body)


def _next(source: IO[bytes]) -> bytes:
    head = source.read(_LENGTH.size)
    return source.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""


def _wait(pipe: IO[bytes], event: int, deadline: float | None) -> None:
    poll = select.poll()  # select() knows no descriptor above 1023, and a fetcher has many
    poll.register(pipe, event)
    if not poll.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError


def _write(sink: IO[bytes], message: bytes, deadline: float | None) -> None:
    view = memoryview(message)
    os.set_blocking(sink.fileno(), False)
    while view:
        _wait(sink, select.POLLOUT, deadline)
        view = view[os.write(sink.fileno(), view[: 1 << 16]) :]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()
