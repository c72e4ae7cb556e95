"""Client of the parser's worker process, with which tasks parse rows.

All content from the web is read in a worker (:mod:`nutch2py.parser.worker.parse_worker`): one per task, started at the
first page (about 0.2 s) and reused. C code may hang, use all memory or crash without returning to the interpreter, so
only a process can contain it. The client sends the cells of some rows ahead, so that the worker does not wait, and
receives the changes to them.

A page that takes more than ``parser.timeout`` seconds of CPU time, ``parser.timeout.wall.factor`` times as many by the
clock, or more memory than ``parser.child.memory.mb``, or that crashes the worker, gets the status FAILED/EXCEPTION with
the reason. A new worker then parses the next page.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError, NutchError
from nutch2py.interfaces import Parse
from nutch2py.parser.row_parser import ParseOutcome, RowParser
from nutch2py.parser.sitemap.sitemap_parser import SitemapEntry
from nutch2py.parser.sitemap.sitemap_row_parser import SitemapRowParser
from nutch2py.parser.worker.domain_budget import DomainTimeBudget
from nutch2py.parser.worker.parse_protocol import (
    MAX_RESPONSE_BYTES,
    ParseRequest,
    ParseResponse,
    failed_parse_status,
    failed_row,
)
from nutch2py.records.record import Mutation, RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.invariants import not_none
from nutch2py.support.reporting import warn
from nutch2py.support.worker_process import WorkerExitedError, WorkerProcess, WorkerSettings, encode_frame
from nutch2py.url.keys import unreverse_url

T = TypeVar("T")
_MAX_PIPELINED_PAGES = 16  # pages sent before the first response
_MAX_PIPELINED_BYTES = 1 << 20
_KILL_GRACE_SECONDS = 3.0  # seconds between the worker's own alarm and the kill
_START_TIMEOUT_SECONDS = 120.0
WALL_FACTOR_PROPERTY = "parser.timeout.wall.factor"
# errors that a worker may report by name: a hostile page may control the worker, so it must not name any other object
_WORKER_ERRORS: dict[str, type[NutchError]] = {error.__name__: error for error in (ConfigurationError, InputError)}


class ParsedRow(NamedTuple):
    """A row with the changes of its parse. ``sitemap_entries``: a sitemap's entries for other rows."""

    key: str
    page: WebPage
    mutation: Mutation | None
    outcome: ParseOutcome
    sitemap_entries: dict[str, SitemapEntry]


class ParseWorkerClient:
    """Parses rows in a worker process. Not for use by several threads: the worker ends with the thread that started it.

    ``sitemaps``: whether rows are sitemaps. ``fields``: the fields that rows must have been read with.
    """

    def __init__(self, conf: Configuration, *, sitemaps: bool = False) -> None:
        parsing = RowParser(conf)  # reports configuration errors in this process
        self.fields: frozenset[RecordField] = SitemapRowParser(conf, parsing).fields if sitemaps else parsing.fields
        self.signature = parsing.signature
        self._conf = conf
        self._request_kind = "sitemap" if sitemaps else "page"
        self._timeout_property = "sitemap.parser.timeout" if sitemaps else "parser.timeout"
        self._domain_budget = DomainTimeBudget(conf, max(0.0, conf.get_float(self._timeout_property, 30.0)))
        self._wall_factor = conf.get_float(WALL_FACTOR_PROPERTY, 10.0)
        self._worker: _ParseWorker | None = None

    def parse_rows(self, rows: Iterable[tuple[str, WebPage]]) -> Iterator[ParsedRow]:
        """Parse rows in order; reads ``rows`` a few pages ahead and leaves the records unchanged."""
        requests = (
            ((key, page), self._make_request(self._request_kind, key, page, self._domain_budget.allowed_seconds(key)))
            for key, page in rows
        )
        for (key, page), response in self._exchange(requests):
            if isinstance(response, str):
                mutation, outcome = failed_row(unreverse_url(key), response)
                yield ParsedRow(key, page, mutation, outcome, {})
                continue
            outcome = not_none(response.outcome, "outcome").to_outcome()
            changes = Mutation(response.puts, response.deletes, response.cleared)
            changed = changes if any(changes) else None
            listed = dict(each.to_pair() for each in response.sitemap_entries)
            yield ParsedRow(key, page, changed, outcome, listed)

    def parse_row(self, key: str, page: WebPage) -> ParseOutcome:
        """Parse one row and set the fields of ``page`` that Nutch's ParserJob writes."""
        (row,) = self.parse_rows([(key, page)])
        if row.mutation is not None:
            page.apply_mutation(row.mutation)
        return row.outcome

    def parse(self, url: str, page: WebPage) -> Parse:
        """Return the parse of a page; sets the parser's metadata in ``page``."""
        request = self._make_request("parse", url, page, self._domain_budget.page_seconds)
        ((_, response),) = self._exchange(iter([(url, request)]))
        if isinstance(response, str):
            return Parse("", "", (), *failed_parse_status(response))
        page.apply_mutation(Mutation(response.puts, response.deletes, response.cleared))
        return not_none(response.parse, "parse").to_parse()

    def _make_request(self, kind: str, key_or_url: str, page: WebPage, cpu_seconds: float) -> ParseRequest:
        cells = page.current_cells(self.fields)
        return ParseRequest(kind, key_or_url, cells, cpu_seconds, cpu_seconds * self._wall_factor)

    def close(self) -> None:
        """Stop the worker if it runs; the next page starts a new one."""
        if self._worker is not None:
            self._worker.terminate()
            self._worker = None

    def _exchange(self, requests: Iterator[tuple[T, ParseRequest]]) -> Iterator[tuple[T, ParseResponse | str]]:
        """Yield each request's tag with its response, or with the reason of its failure."""
        waiting: deque[_PendingRequest[T]] = deque()
        ahead, more = 0, True
        started = 0.0
        try:
            while True:
                while more and (not waiting or (len(waiting) < _MAX_PIPELINED_PAGES and ahead < _MAX_PIPELINED_BYTES)):
                    found = next(requests, None)
                    if found is None:
                        more = False
                        break
                    packed = encode_frame(found[1])
                    if not waiting and self._worker is not None and not self._worker.is_alive():
                        self.close()  # it died while idle: this page is not the cause
                    worker = self._running_worker()
                    if not waiting:
                        started = worker.used_seconds()
                    worker.send(packed)
                    waiting.append(_PendingRequest(found[0], found[1], packed))
                    ahead += len(packed)
                if not waiting:
                    return
                tag, request, packed = waiting[0]
                received = self._receive_response(request, started)
                waiting.popleft()
                ahead -= len(packed)
                response: ParseResponse | str
                if isinstance(received, _ParseFailure):
                    response, used = received.reason, received.used_seconds
                else:
                    before, started = started, self._running_worker().used_seconds()
                    response, used = received, started - before
                if request.kind != "parse":
                    self._domain_budget.record(request.key_or_url, used)
                if isinstance(response, str) or response.is_last:
                    self.close()
                    for each in waiting:
                        if each.request.kind != "parse":
                            each.request.cpu_seconds = self._domain_budget.allowed_seconds(each.request.key_or_url)
                            each.request.wall_seconds = each.request.cpu_seconds * self._wall_factor
                        self._running_worker().send(encode_frame(each.request))
                    if waiting:
                        started = self._running_worker().used_seconds()
                yield tag, response
        finally:
            if waiting:  # the caller stopped: pending responses would be read as those of later requests
                self.close()

    def _receive_response(self, request: ParseRequest, started: float) -> ParseResponse | _ParseFailure:
        """Return the response, or why there is none. ``started``: CPU time of the worker before this request."""
        limit = request.wall_seconds
        worker = self._running_worker()
        try:
            response = worker.receive_response(limit + _KILL_GRACE_SECONDS if limit else None)
        except TimeoutError:
            return self._make_timeout_failure(request, is_wall_limit=True)
        except WorkerExitedError as error:
            if error.exit_code in (-signal.SIGALRM, -signal.SIGPROF):
                return self._make_timeout_failure(request, is_wall_limit=error.exit_code == -signal.SIGALRM)
            return _ParseFailure(worker.describe_exit(error), worker.used_seconds() - started)
        except _InvalidResponseError as error:
            return _ParseFailure(str(error), worker.used_seconds() - started)
        response = check_response(response)
        if (response.parse if request.kind == "parse" else response.outcome) is None:
            return _ParseFailure("the parser process sent an incomplete response", worker.used_seconds() - started)
        return response

    def _make_timeout_failure(self, request: ParseRequest, *, is_wall_limit: bool) -> _ParseFailure:
        """Return the failure of a page that reached a limit. By the clock, too, it counts as its CPU limit."""
        limit = request.cpu_seconds
        name = (
            self._timeout_property
            if limit == self._domain_budget.page_seconds
            else "parser.domain.seconds: others took too long"
        )
        reason = f"more than {limit:g} s ({name})"
        if is_wall_limit:
            reason = (
                f"no result after {request.wall_seconds:g} s, {self._wall_factor:g} times {limit:g} s of CPU time "
                f"({name}; {WALL_FACTOR_PROPERTY})"
            )
        return _ParseFailure(reason, limit)

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker, None if none runs."""
        return None if self._worker is None else self._worker.pid

    def _running_worker(self) -> _ParseWorker:
        if self._worker is None:
            self._worker = _ParseWorker(self._conf)
        return self._worker


class _ParseFailure(NamedTuple):
    """Why a page has no response. ``used_seconds``: the time that counts for its domain."""

    reason: str
    used_seconds: float


class _PendingRequest(NamedTuple, Generic[T]):
    """A request that has been sent and has no response yet."""

    tag: T
    request: ParseRequest
    frame: bytes


class _InvalidResponseError(Exception):
    """The worker sent something else than a response: a page controls it, or corrupted its memory."""


class _ParseWorker(WorkerProcess):
    """A running worker that has reported to be ready."""

    def __init__(self, conf: Configuration) -> None:
        super().__init__("nutch2py.parser.worker.parse_worker", "run_worker", MAX_RESPONSE_BYTES)
        self._max_memory_mb = conf.get_int("parser.child.memory.mb", 1024)
        self.send(encode_frame(WorkerSettings.from_conf(conf)))
        try:
            check_response(self.receive_response(_START_TIMEOUT_SECONDS))
        except (TimeoutError, WorkerExitedError, _InvalidResponseError) as error:
            self.terminate()
            if isinstance(error, WorkerExitedError):
                reason = self.describe_exit(error)
            else:
                reason = str(error) or f"it is not ready after {_START_TIMEOUT_SECONDS:g} s"
            raise NutchError(
                f"cannot parse: {reason}: raise the limit, or check that the machine has enough memory"
            ) from None
        except BaseException:
            self.terminate()
            raise

    def describe_exit(self, error: WorkerExitedError) -> str:
        """Return why the process ended."""
        return (
            f"the parser process ended ({error.reason}); it may take {self._max_memory_mb} MB (parser.child.memory.mb)"
        )

    def receive_response(self, seconds: float | None) -> ParseResponse:
        """Return the next response.

        Raises:
            TimeoutError: No response after ``seconds``.
            WorkerExitedError: The worker exited before it responded.
            _InvalidResponseError: The worker broke the protocol; it is killed.
        """
        try:
            return msgspec.msgpack.decode(self.receive(seconds), type=ParseResponse)
        except msgspec.MsgspecError as error:
            self.kill()
            raise _InvalidResponseError(f"the parser process sent an invalid response: {error}") from error


def check_response(response: ParseResponse) -> ParseResponse:
    """Print the worker's warnings and raise the error of a response that no page caused."""
    for line in response.printed_warnings.splitlines():
        warn(line.removeprefix("WARN "))
    if response.error is not None:
        name, text = response.error
        raise _WORKER_ERRORS.get(name, NutchError)(text)
    return response
