"""The process in which pages are parsed: the child's side of :mod:`nutch2py.parser.worker.parse_worker_client`.

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

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.interfaces import Parse
from nutch2py.parser.row_parser import ParseOutcome, RowParser, describe_parse_error
from nutch2py.parser.sitemap.sitemap_parser import SitemapEntry
from nutch2py.parser.sitemap.sitemap_row_parser import SitemapRowParser
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.cells import ParseStatus
from nutch2py.records.record import Cells, Mutation
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.url.keys import unreverse_url

LENGTH_PREFIX = struct.Struct("<Q")
MAX_RESPONSE_BYTES = 64 << 20  # bytes
_MAX_PAGES = 20_000  # after that many the child is started anew: what a library leaks must not add up
_GC_THRESHOLD = (
    50_000  # new objects after which cycles are looked for: pages leave none, and parsing alone has this process
)
_MAX_PRINTED_CHARS = 1 << 16  # characters of a page's warnings


class ParseWorkerSettings(msgspec.Struct, array_like=True):
    """The first frame: the configuration as a whole, and the process that the child must not outlive."""

    properties: dict[str, str]
    conf_dirs: list[str]
    base_dir: str
    parent_pid: int


class ParseRequest(msgspec.Struct, array_like=True):
    """A page: ``kind`` is page or sitemap (``key_or_url`` is a row key) or parse (a URL); ``timeout_seconds`` 0: no limit."""

    kind: str
    key_or_url: str
    cells: Cells
    timeout_seconds: float


class WireSitemapEntry(msgspec.Struct, array_like=True):
    """What a sitemap says of a row."""

    key: str
    entry: tuple[str, int | None, str | None, float, dict[str, str]]

    def to_pair(self) -> tuple[str, SitemapEntry]:
        """Return row key and entry."""
        return self.key, SitemapEntry(*self.entry)


class WireParseOutcome(msgspec.Struct, array_like=True):
    """A :class:`nutch2py.parser.row_parser.ParseOutcome`."""

    label: str
    status: tuple[int, int, tuple[str, ...]] | None
    removed_outlinks: tuple[str, ...]
    message: str
    failed_plugin: str
    skipped_links: tuple[tuple[str, int], ...] = ()

    def to_outcome(self) -> ParseOutcome:
        """Return it as it was."""
        status = None if self.status is None else ParseStatus(*self.status)
        return ParseOutcome(
            self.label, status, self.removed_outlinks, self.message, self.failed_plugin, self.skipped_links
        )


class WireParse(msgspec.Struct, array_like=True):
    """A :class:`nutch2py.plugins.loading.Parse`."""

    text: str
    title: str
    outlinks: list[tuple[str, str]]
    major: int
    minor: int
    args: tuple[str, ...]
    metadata: dict[str, bytes]


class ParseResponse(msgspec.Struct, array_like=True):
    """What became of a page. ``is_last``: the child ends, and has not looked at what follows.

    ``error``: class and text of an error that is no page's fault (:class:`nutch2py.errors.NutchError`).
    """

    puts: Cells = {}
    deletes: dict[bytes, list[bytes]] = {}
    cleared: list[bytes] = []
    outcome: WireParseOutcome | None = None
    sitemap_entries: list[WireSitemapEntry] = []
    parse: WireParse | None = None
    printed_warnings: str = ""
    error: tuple[str, str] | None = None
    is_last: bool = False


def encode_frame(message: msgspec.Struct) -> bytes:
    """Return a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return LENGTH_PREFIX.pack(len(body)) + body


def run_worker() -> None:
    """Parse what comes through standard input until it ends."""
    # the answers have a pipe of their own: what a library prints must not get between them
    source, sink = os.fdopen(os.dup(0), "rb", 1 << 18), os.fdopen(os.dup(1), "wb", 1 << 18)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    for stop in (signal.SIGINT, signal.SIGTERM):  # told to a whole group, it is for the parent, which ends this one
        signal.signal(stop, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    settings = msgspec.msgpack.decode(_read_frame(source), type=ParseWorkerSettings)
    _exit_with_parent(settings.parent_pid)
    conf = Configuration(settings.properties, [Path(folder) for folder in settings.conf_dirs], Path(settings.base_dir))
    _limit_memory(conf.get_int("parser.child.memory.mb", 1024) << 20)
    printed = io.StringIO()
    sys.stdout = sys.stderr = printed
    try:
        work = _RequestHandler(conf)
    except NutchError as error:
        _send_response(sink, ParseResponse(error=(type(error).__name__, str(error)), is_last=True))
        return
    _send_response(sink, ParseResponse(printed_warnings=_take_printed(printed)))
    requests = msgspec.msgpack.Decoder(ParseRequest)
    gc.freeze()  # what is made from here on goes with its page: the rest need not be looked through again and again
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
    for number, body in enumerate(iter(lambda: _read_frame(source), b""), 1):
        request = requests.decode(body)
        signal.setitimer(signal.ITIMER_REAL, request.timeout_seconds)
        answer = work.handle(request)
        answer.printed_warnings = _take_printed(printed)
        answer.is_last |= number >= _MAX_PAGES
        packed = encode_frame(answer)
        if len(packed) > MAX_RESPONSE_BYTES:
            answer = work.failed_response(request, f"the parse is larger than {MAX_RESPONSE_BYTES} bytes")
            answer.is_last = True
            packed = encode_frame(answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sink.write(packed)
        sink.flush()
        if answer.is_last:
            return


class _RequestHandler:
    """Does what requests ask for."""

    def __init__(self, conf: Configuration) -> None:
        self._row_parser = RowParser(conf)
        self._sitemap_row_parser = SitemapRowParser(conf, self._row_parser)

    def handle(self, request: ParseRequest) -> ParseResponse:
        fields = (self._sitemap_row_parser if request.kind == "sitemap" else self._row_parser).fields
        page = WebPage(request.cells, None if request.kind == "parse" else fields)
        try:
            answer = self._parse(request, page)
        except PluginError as failed:
            failed = failed.for_page(unreverse_url(request.key_or_url))
            answer = self.failed_response(request, f"{failed.plugin_id}: {failed.reason}", failed.plugin_id)
        except NutchError as error:
            return ParseResponse(error=(type(error).__name__, str(error)))
        except Exception as error:  # noqa: BLE001 - whatever a page does to a plug-in, the job goes on
            answer = self.failed_response(request, describe_parse_error(error))
            answer.is_last = isinstance(error, MemoryError)
        answer.is_last |= self._row_parser.is_out_of_memory
        return answer

    def _parse(self, request: ParseRequest, page: WebPage) -> ParseResponse:
        answer = ParseResponse()
        if request.kind == "parse":
            answer.parse = _wire_parse(self._row_parser.parse(request.key_or_url, page))
        elif request.kind == "sitemap":
            outcome, listed = self._sitemap_row_parser.parse_row(request.key_or_url, page)
            answer.outcome = _wire_outcome(outcome)
            answer.sitemap_entries = [
                WireSitemapEntry(_valid_utf8(key), _wire_entry(entry)) for key, entry in listed.items()
            ]
        else:
            answer.outcome = _wire_outcome(self._row_parser.parse_row(request.key_or_url, page))
        mutation = page.mutation()
        if mutation is not None:
            answer.puts, answer.deletes, answer.cleared = mutation
        return answer

    @staticmethod
    def failed_response(request: ParseRequest, reason: str, plugin: str = "") -> ParseResponse:
        """Return the answer for a page that could not be parsed, by the fault of ``plugin`` if one is named."""
        if request.kind == "parse":
            return ParseResponse(parse=_wire_parse(Parse("", "", (), *failed_parse_status(reason))))
        mutation, outcome = failed_row(unreverse_url(request.key_or_url), _valid_utf8(reason), plugin)
        return ParseResponse(*mutation, outcome=_wire_outcome(outcome))


def failed_parse_status(reason: str) -> ParseStatus:
    """Return the status of a page whose parse was ended."""
    from nutch2py.records.webpage import ParseStatusCode

    return ParseStatus(ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (reason,))


def failed_row(url: str, reason: str, plugin: str = "") -> tuple[Mutation, ParseOutcome]:
    """Return the changes to the row of a page whose parse was ended, and its outcome.

    The parse mark goes that a parse of the same fetch may have left, so that ``-resume`` tries the page again.
    """
    row = WebPage(fields=frozenset())
    row.parse_status = status = failed_parse_status(reason)
    mutation = row.mutation()
    assert mutation is not None
    mutation = mutation._replace(deletes={WebPage.markers.family: [Mark.PARSE.encode()]})
    message = "" if plugin else f"Unable to successfully parse content {url}: {reason}"
    return mutation, ParseOutcome("failed", status, message=message, failed_plugin=plugin)


def _wire_outcome(outcome: ParseOutcome) -> WireParseOutcome:
    label, status, dropped, message, plugin, left_out = outcome
    told = None if status is None else (int(status.major), int(status.minor), tuple(map(_valid_utf8, status.args)))
    return WireParseOutcome(label, told, tuple(map(_valid_utf8, dropped)), _valid_utf8(message), plugin, left_out)


def _wire_parse(parse: Parse) -> WireParse:
    return WireParse(
        _valid_utf8(parse.text),
        _valid_utf8(parse.title),
        [(_valid_utf8(url), _valid_utf8(anchor)) for url, anchor in parse.outlinks],
        int(parse.major),
        int(parse.minor),
        tuple(map(_valid_utf8, parse.args)),
        {_valid_utf8(name): value for name, value in parse.metadata.items()},
    )


def _valid_utf8(text: str) -> str:
    """Return a text that can be UTF-8: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _take_printed(printed: io.StringIO) -> str:
    text = printed.getvalue()
    if text:
        printed.seek(0)
        printed.truncate()
    return _valid_utf8(text[:_MAX_PRINTED_CHARS])


def _send_response(sink: IO[bytes], answer: ParseResponse) -> None:
    sink.write(encode_frame(answer))
    sink.flush()


def _read_frame(source: IO[bytes]) -> bytes:
    head = source.read(LENGTH_PREFIX.size)
    return source.read(LENGTH_PREFIX.unpack(head)[0]) if len(head) == LENGTH_PREFIX.size else b""


def _limit_memory(max_bytes: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if max_bytes > 0:
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))


def _exit_with_parent(parent: int) -> None:
    """Have the kernel end this process when the thread that started it ends.

    Without it the end of standard input would be seen only after the page at hand, as it is on other systems.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def _wire_entry(entry: SitemapEntry) -> tuple[str, int | None, str | None, float, dict[str, str]]:
    extensions = {_valid_utf8(name): _valid_utf8(value) for name, value in entry.extensions.items()}
    return _valid_utf8(entry.url), entry.last_modified, entry.change_frequency, entry.priority, extensions
