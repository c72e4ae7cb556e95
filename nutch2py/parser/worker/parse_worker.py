"""The process in which pages are parsed: the other end of :mod:`nutch2py.parser.worker.parse_worker_client`.

It reads rows from standard input and writes the changes to them, in order. The kernel enforces the limits: an
unhandled signal ends a process whose page takes too much CPU time (SIGPROF) or far too long by the clock (SIGALRM), and
the address space is at most ``parser.child.memory.mb``. The process dies with its parent.
"""

from __future__ import annotations

import gc
import io
import sys
from typing import IO

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.interfaces import Parse
from nutch2py.parser.row_parser import RowParser, describe_parse_error
from nutch2py.parser.sitemap.sitemap_row_parser import SitemapRowParser
from nutch2py.parser.worker.parse_protocol import (
    MAX_RESPONSE_BYTES,
    ParseRequest,
    ParseResponse,
    WireParse,
    WireParseOutcome,
    WireSitemapEntry,
    failed_parse_status,
    failed_row,
)
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.webpage import WebPage
from nutch2py.support.formatting import valid_utf8
from nutch2py.support.worker_process import (
    WorkerSettings,
    encode_frame,
    open_worker_pipes,
    read_frame,
    set_time_limits,
)
from nutch2py.url.keys import unreverse_url

_MAX_PAGES = 20_000  # the process is restarted after that many, so that leaks of libraries do not add up
_GC_THRESHOLD = 50_000  # new objects before a search for cycles: pages leave none, and this process does nothing else
_MAX_PRINTED_CHARS = 1 << 16  # of a page's warnings


def run_worker() -> None:
    """Parse the requests of standard input until it is closed."""
    source, sink = open_worker_pipes()
    conf = WorkerSettings.decode(read_frame(source)).to_conf()
    _limit_memory(conf.get_int("parser.child.memory.mb", 1024) << 20)
    printed = io.StringIO()
    sys.stdout = sys.stderr = printed
    try:
        handler = _RequestHandler(conf)
    except NutchError as error:
        _send_response(sink, ParseResponse(error=(type(error).__name__, str(error)), is_last=True))
        return
    _send_response(sink, ParseResponse(printed_warnings=_take_printed(printed)))
    requests = msgspec.msgpack.Decoder(ParseRequest)
    gc.freeze()  # long-lived objects: exclude them from every later collection
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
    for number, body in enumerate(iter(lambda: read_frame(source), b""), 1):
        request = requests.decode(body)
        set_time_limits(request.cpu_seconds, request.wall_seconds)
        response = handler.handle(request)
        response.printed_warnings = _take_printed(printed)
        response.is_last |= number >= _MAX_PAGES
        packed = encode_frame(response)
        if len(packed) > MAX_RESPONSE_BYTES:
            response = handler.failed_response(request, f"the parse is larger than {MAX_RESPONSE_BYTES} bytes")
            response.is_last = True
            packed = encode_frame(response)
        set_time_limits(0, 0)
        sink.write(packed)
        sink.flush()
        if response.is_last:
            return


class _RequestHandler:
    """Handles requests: one method call per request."""

    def __init__(self, conf: Configuration) -> None:
        self._row_parser = RowParser(conf)
        self._sitemap_row_parser = SitemapRowParser(conf, self._row_parser)

    def handle(self, request: ParseRequest) -> ParseResponse:
        fields = (self._sitemap_row_parser if request.kind == "sitemap" else self._row_parser).fields
        page = WebPage(request.cells, None if request.kind == "parse" else fields)
        try:
            response = self._parse(request, page)
        except PluginError as failed:
            failed = failed.for_page(unreverse_url(request.key_or_url))
            response = self.failed_response(request, f"{failed.plugin_id}: {failed.reason}", failed.plugin_id)
        except NutchError as error:
            return ParseResponse(error=(type(error).__name__, str(error)))
        except Exception as error:  # noqa: BLE001 - the job continues, whatever a page causes in a plug-in
            response = self.failed_response(request, describe_parse_error(error))
            response.is_last = isinstance(error, MemoryError)
        response.is_last |= self._row_parser.is_out_of_memory
        return response

    def _parse(self, request: ParseRequest, page: WebPage) -> ParseResponse:
        response = ParseResponse()
        if request.kind == "parse":
            response.parse = WireParse.from_parse(self._row_parser.parse(request.key_or_url, page))
        elif request.kind == "sitemap":
            outcome, listed = self._sitemap_row_parser.parse_row(request.key_or_url, page)
            response.outcome = WireParseOutcome.from_outcome(outcome)
            response.sitemap_entries = [WireSitemapEntry.from_entry(key, entry) for key, entry in listed.items()]
        else:
            response.outcome = WireParseOutcome.from_outcome(self._row_parser.parse_row(request.key_or_url, page))
        mutation = page.mutation()
        if mutation is not None:
            response.puts, response.deletes, response.cleared = mutation
        return response

    @staticmethod
    def failed_response(request: ParseRequest, reason: str, plugin: str = "") -> ParseResponse:
        """Return the response for a page that failed; ``plugin``: id of the plug-in that caused it, if any."""
        if request.kind == "parse":
            return ParseResponse(parse=WireParse.from_parse(Parse("", "", (), *failed_parse_status(reason))))
        mutation, outcome = failed_row(unreverse_url(request.key_or_url), valid_utf8(reason), plugin)
        return ParseResponse(*mutation, outcome=WireParseOutcome.from_outcome(outcome))


def _take_printed(printed: io.StringIO) -> str:
    text = printed.getvalue()
    if text:
        printed.seek(0)
        printed.truncate()
    return valid_utf8(text[:_MAX_PRINTED_CHARS])


def _send_response(sink: IO[bytes], response: ParseResponse) -> None:
    sink.write(encode_frame(response))
    sink.flush()


def _limit_memory(max_bytes: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if max_bytes > 0:
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
