"""The process in which pages are parsed: the child's side of :mod:`nutch2py.parser.bounded_parsing`.

It reads rows from standard input and answers with what changes in them, in order. Frames are msgpack behind eight bytes
of length: msgpack cannot make a process run what another sends. Time and memory are bounded by the kernel, which asks
no library: an alarm that nothing handles ends the process when a page takes too long, and no more address space than
``parser.child.memory.mb`` is given out. The process dies with the one that started it.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import struct
import sys
from pathlib import Path
from typing import IO

import msgspec

from nutch2py.cells import ParseStatus
from nutch2py.conf import Configuration
from nutch2py.contracts import Parse
from nutch2py.errors import NutchError
from nutch2py.parser.parsing import ParseOutcome, Parsing, failure
from nutch2py.parser.sitemap import SitemapEntry
from nutch2py.parser.sitemap_parsing import SitemapParsing
from nutch2py.plugin_guard import PluginError
from nutch2py.record import Cells, Mutation
from nutch2py.url.keys import unreverse_url
from nutch2py.webpage import Mark, WebPage

LENGTH = struct.Struct("<Q")
MAX_ANSWER = 64 << 20  # bytes
_PAGES = 20_000  # after that many the child is started anew: what a library leaks must not add up
_YOUNG = 50_000  # new objects after which cycles are looked for: pages leave none, and parsing alone has this process
_MAX_PRINTED = 1 << 16  # characters of a page's warnings


class Settings(msgspec.Struct, array_like=True):
    """The first frame: the configuration as a whole, and the process that the child must not outlive."""

    properties: dict[str, str]
    folders: list[str]
    base: str
    parent: int


class Request(msgspec.Struct, array_like=True):
    """A page: ``work`` is page or sitemap (``name`` is a row key) or parse (a URL); ``seconds`` 0: no limit."""

    work: str
    name: str
    cells: Cells
    seconds: float


class Listed(msgspec.Struct, array_like=True):
    """What a sitemap says of a row."""

    key: str
    entry: tuple[str, int | None, str | None, float, dict[str, str]]

    def pair(self) -> tuple[str, SitemapEntry]:
        """Return row key and entry."""
        return self.key, SitemapEntry(*self.entry)


class Outcome(msgspec.Struct, array_like=True):
    """A :class:`nutch2py.parser.parsing.ParseOutcome`."""

    label: str
    status: tuple[int, int, tuple[str, ...]] | None
    dropped: tuple[str, ...]
    message: str
    plugin: str
    left_out: tuple[tuple[str, int], ...] = ()

    def outcome(self) -> ParseOutcome:
        """Return it as it was."""
        status = None if self.status is None else ParseStatus(*self.status)
        return ParseOutcome(self.label, status, self.dropped, self.message, self.plugin, self.left_out)


class Parsed(msgspec.Struct, array_like=True):
    """A :class:`nutch2py.plugins.Parse`."""

    text: str
    title: str
    outlinks: list[tuple[str, str]]
    major: int
    minor: int
    args: tuple[str, ...]
    metadata: dict[str, bytes]


class Answer(msgspec.Struct, array_like=True):
    """What became of a page. ``last``: the child ends, and has not looked at what follows.

    ``refused``: class and text of an error that is no page's fault (:class:`nutch2py.errors.NutchError`).
    """

    puts: Cells = {}
    deletes: dict[bytes, list[bytes]] = {}
    cleared: list[bytes] = []
    outcome: Outcome | None = None
    listed: list[Listed] = []
    parse: Parsed | None = None
    printed: str = ""
    refused: tuple[str, str] | None = None
    last: bool = False


def frame(message: msgspec.Struct) -> bytes:
    """Return a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body


def serve() -> None:
    """Parse what comes through standard input until it ends."""
    # the answers have a pipe of their own: what a library prints must not get between them
    source, sink = os.fdopen(os.dup(0), "rb", 1 << 18), os.fdopen(os.dup(1), "wb", 1 << 18)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    for stop in (signal.SIGINT, signal.SIGTERM):  # told to a whole group, it is for the parent, which ends this one
        signal.signal(stop, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    settings = msgspec.msgpack.decode(_next(source), type=Settings)
    _die_with(settings.parent)
    conf = Configuration(settings.properties, [Path(folder) for folder in settings.folders], Path(settings.base))
    _limit_memory(conf.get_int("parser.child.memory.mb", 1024) << 20)
    printed = io.StringIO()
    sys.stdout = sys.stderr = printed
    try:
        work = _Work(conf)
    except NutchError as error:
        _send(sink, Answer(refused=(type(error).__name__, str(error)), last=True))
        return
    _send(sink, Answer(printed=_taken(printed)))
    requests = msgspec.msgpack.Decoder(Request)
    gc.freeze()  # what is made from here on goes with its page: the rest need not be looked through again and again
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    for number, body in enumerate(iter(lambda: _next(source), b""), 1):
        request = requests.decode(body)
        signal.setitimer(signal.ITIMER_REAL, request.seconds)
        answer = work.do(request)
        answer.printed = _taken(printed)
        answer.last |= number >= _PAGES
        packed = frame(answer)
        if len(packed) > MAX_ANSWER:
            answer = work.failed(request, f"the parse is larger than {MAX_ANSWER} bytes")
            answer.last = True
            packed = frame(answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sink.write(packed)
        sink.flush()
        if answer.last:
            return


class _Work:
    """Does what requests ask for."""

    def __init__(self, conf: Configuration) -> None:
        self._parsing = Parsing(conf)
        self._sitemaps = SitemapParsing(conf, self._parsing)

    def do(self, request: Request) -> Answer:
        fields = (self._sitemaps if request.work == "sitemap" else self._parsing).fields
        page = WebPage(request.cells, None if request.work == "parse" else fields)
        try:
            answer = self._done(request, page)
        except PluginError as failed:
            failed = failed.of_page(unreverse_url(request.name))
            answer = self.failed(request, f"{failed.plugin}: {failed.reason}", failed.plugin)
        except NutchError as error:
            return Answer(refused=(type(error).__name__, str(error)))
        except Exception as error:  # noqa: BLE001 - whatever a page does to a plug-in, the job goes on
            answer = self.failed(request, failure(error))
            answer.last = isinstance(error, MemoryError)
        answer.last |= self._parsing.exhausted
        return answer

    def _done(self, request: Request, page: WebPage) -> Answer:
        answer = Answer()
        if request.work == "parse":
            answer.parse = _parsed(self._parsing.parse(request.name, page))
        elif request.work == "sitemap":
            outcome, listed = self._sitemaps.process(request.name, page)
            answer.outcome = _outcome(outcome)
            answer.listed = [Listed(_valid(key), _sent(entry)) for key, entry in listed.items()]
        else:
            answer.outcome = _outcome(self._parsing.process(request.name, page))
        mutation = page.mutation()
        if mutation is not None:
            answer.puts, answer.deletes, answer.cleared = mutation
        return answer

    @staticmethod
    def failed(request: Request, reason: str, plugin: str = "") -> Answer:
        """Return the answer for a page that could not be parsed, by the fault of ``plugin`` if one is named."""
        if request.work == "parse":
            return Answer(parse=_parsed(Parse("", "", (), *failed_status(reason))))
        mutation, outcome = ended(unreverse_url(request.name), _valid(reason), plugin)
        return Answer(*mutation, outcome=_outcome(outcome))


def failed_status(reason: str) -> ParseStatus:
    """Return the status of a page whose parse was ended."""
    from nutch2py.webpage import ParseStatusCode

    return ParseStatus(ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (reason,))


def ended(url: str, reason: str, plugin: str = "") -> tuple[Mutation, ParseOutcome]:
    """Return the changes to the row of a page whose parse was ended, and its outcome.

    The parse mark goes that a parse of the same fetch may have left, so that ``-resume`` tries the page again.
    """
    row = WebPage(fields=frozenset())
    row.parse_status = status = failed_status(reason)
    mutation = row.mutation()
    assert mutation is not None
    mutation = mutation._replace(deletes={WebPage.markers.family: [Mark.PARSE.encode()]})
    message = "" if plugin else f"Unable to successfully parse content {url}: {reason}"
    return mutation, ParseOutcome("failed", status, message=message, plugin=plugin)


def _outcome(outcome: ParseOutcome) -> Outcome:
    label, status, dropped, message, plugin, left_out = outcome
    told = None if status is None else (int(status.major), int(status.minor), tuple(map(_valid, status.args)))
    return Outcome(label, told, tuple(map(_valid, dropped)), _valid(message), plugin, left_out)


def _parsed(parse: Parse) -> Parsed:
    return Parsed(
        _valid(parse.text),
        _valid(parse.title),
        [(_valid(url), _valid(anchor)) for url, anchor in parse.outlinks],
        int(parse.major),
        int(parse.minor),
        tuple(map(_valid, parse.args)),
        {_valid(name): value for name, value in parse.metadata.items()},
    )


def _valid(text: str) -> str:
    """Return a text that can be UTF-8: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _taken(printed: io.StringIO) -> str:
    text = printed.getvalue()
    if text:
        printed.seek(0)
        printed.truncate()
    return _valid(text[:_MAX_PRINTED])


def _send(sink: IO[bytes], answer: Answer) -> None:
    sink.write(frame(answer))
    sink.flush()


def _next(source: IO[bytes]) -> bytes:
    head = source.read(LENGTH.size)
    return source.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _limit_memory(most: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if most > 0:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _die_with(parent: int) -> None:
    """Have the kernel end this process when the thread that started it ends.

    Without it the end of standard input would be seen only after the page at hand, as it is on other systems.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def _sent(entry: SitemapEntry) -> tuple[str, int | None, str | None, float, dict[str, str]]:
    extensions = {_valid(name): _valid(value) for name, value in entry.extensions.items()}
    return _valid(entry.url), entry.last_modified, entry.change_frequency, entry.priority, extensions
