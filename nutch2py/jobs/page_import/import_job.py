"""import: writes the pages of web archives as fetched rows of a batch, and lists of URLs as seeds.

A row is what fetch would have stored at the time of the record. parse and updatedb continue with the batch.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchedPage
from nutch2py.fetcher.fetcher import Fetcher
from nutch2py.fetcher.output.page_store import PageStore
from nutch2py.fetcher.output.page_updater import get_protocol_status
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_settings import enabled_protocols
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.jobs.fetch.page_sink import PageSink
from nutch2py.jobs.generate.generate_job import new_batch_id
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.inject.seeds import find_seed_files
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import FETCH_REDIRECTS
from nutch2py.jobs.page_import.archived_response import MAX_HEAD_BYTES, build_response, parse_date
from nutch2py.jobs.page_import.url_lists import detect_format, write_seed_lines
from nutch2py.jobs.page_import.warc_reader import WarcReader, WarcRecord
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.schedule.fetch_intervals import FetchIntervals
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.support.reporting import log_line
from nutch2py.support.temp_dirs import temp_dir
from nutch2py.table import DataStore
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_length import check_length, max_url_length

_ROWS_PER_READ, _BYTES_PER_READ = 100, 16 << 20
_ROWS_PER_FLUSH = 1000
_MAX_DIGESTS = 100_000
_MAX_CONTENT = 1 << 28  # bytes of a page when http.content.limit is -1
_PAGE_KINDS = frozenset({"response", "resource", "revisit"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_UNFETCHED = (0, CrawlStatus.UNFETCHED)
_STATE_FIELDS: frozenset[RecordField] = frozenset(
    {WebPage.status, WebPage.fetch_time, WebPage.prev_fetch_time, WebPage.fetch_interval, WebPage.markers}
)


@dataclass
class ImportResult:
    """Result of an import.

    Attributes:
        batch_id: Batch of the imported pages, "" when there was no archive.
        pages: Number of pages.
        seeds: Number of seeds that were read from lists.
        skipped: Numbers of records that were not imported, by reason.
    """

    batch_id: str = ""
    pages: int = 0
    seeds: int = 0
    skipped: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _ArchivedPage:
    """A page of an archive; ``time`` in ms since 1970."""

    key: str
    response: FetchResponse
    time: int
    record: WarcRecord


class _PageImporter:
    """Writes the pages of archives into the table; a context manager within the lock of a fetch."""

    def __init__(
        self, conf: Configuration, batch_id: str, counts: Counter[str], *, filter_urls: bool, normalize: bool
    ) -> None:
        conf = conf.copy()
        conf.set("http.store.responsetime", False)  # no record has it
        self._conf, self._batch_id, self.counts = conf, batch_id, counts
        self._options = replace(FetchOptions.from_conf(conf, 1), parse=False, warc_dir="")
        self._fields = Fetcher.get_required_fields(conf, self._options) | _STATE_FIELDS
        self._interval = FetchIntervals.from_conf(conf).default
        self._score = conf.get_float("db.score.injected", 1.0)
        self._scoring = ScoringFilters(conf)
        self._normalize = URLNormalizers(conf, "inject").normalize if normalize else str
        self._accept = URLFilters(conf).filter_link if filter_urls else str
        limit = conf.get_int("http.content.limit", 1048576)
        self._content_limit = limit if 0 <= limit < _MAX_CONTENT else _MAX_CONTENT
        self._protocols, self._max_url_length = enabled_protocols(conf), max_url_length(conf)
        self._pending: dict[str, _ArchivedPage] = {}
        self._pending_bytes = 0
        self._written: dict[str, int] = {}  # fetch times of rows that are not flushed
        self._digests: OrderedDict[str, str] = OrderedDict()

    def run(self, store: DataStore[WebPage], sink: PageSink, paths: Sequence[Path]) -> None:
        """Import the pages of files."""
        self._store, self._sink = store, sink
        self._pages = PageStore(self._conf, self._options, self._write_item, log_line)
        self._time = 0
        try:
            for path in paths:
                before = self.counts["pages"]
                for reason in self._read_file(path):
                    self.counts[reason] += 1
                self._flush()
                log_line(f"Import: {self.counts['pages'] - before} pages of {path}")
        finally:
            self._pages.close()

    def _read_file(self, path: Path) -> Iterator[str]:
        """Import a file, and yield why records are skipped."""
        try:
            with path.open("rb") as file:
                if file.read(2) != b"PK":
                    file.seek(0)
                    yield from self._read_warc(file)
                    return
                file.seek(0)
                yield from self._read_wacz(file)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}: check the file") from error

    def _read_wacz(self, file: IO[bytes]) -> Iterator[str]:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, zlib.error):
            yield "damaged_zip"
            return
        with archive:
            for member in archive.infolist():
                if member.filename.startswith("archive/") and not member.is_dir():
                    try:
                        with archive.open(member) as warc:
                            yield from self._read_warc(warc)
                    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError):
                        yield "damaged_zip"

    def _read_warc(self, file: IO[bytes]) -> Iterator[str]:
        limit = self._content_limit + MAX_HEAD_BYTES
        for record in WarcReader(file, limit):
            reason = record if isinstance(record, str) else self._add_record(record)
            if reason:
                yield reason

    def _add_record(self, record: WarcRecord) -> str:
        """Keep the page of a record for the next write; return the reason if it has none."""
        kind = record.kind
        if kind not in _PAGE_KINDS:
            return kind if kind in _OTHER_KINDS else "other_record"
        time = parse_date(record.headers.get("warc-date", ""))
        if not time:
            return "no_date"
        try:
            check_length(record.url, self._max_url_length)
            scheme = _SCHEME.match(record.url)
            if scheme is None:
                return "malformed_url"
            if scheme[1].lower() not in self._protocols:
                return "other_protocol"
            url = self._normalize(record.url)
            url = self._accept(url) if url else None
            if not url:
                return "filtered"
            key = reverse_url(url)
        except ValueError:
            return "malformed_url"
        response = build_response(record, self._content_limit)
        if isinstance(response, str):
            return response
        response.url = url
        record.block = b""
        if key in self._pending:
            self._write_pending()
        self._pending[key] = _ArchivedPage(key, response, time, record)
        self._pending_bytes += response.memory_size
        if len(self._pending) >= _ROWS_PER_READ or self._pending_bytes > _BYTES_PER_READ:
            self._write_pending()
        return ""

    def _write_pending(self) -> None:
        keys = [*self._pending]
        for key, row in zip(keys, self._store.get_many(keys, self._fields), strict=True):
            reason = self._write_page(self._pending[key], row)
            if reason:
                self.counts[reason] += 1
        self._pending.clear()
        self._pending_bytes = 0
        if len(self._written) >= _ROWS_PER_FLUSH:
            self._sink.flush()
            self._written.clear()

    def _flush(self) -> None:
        self._write_pending()
        self._sink.flush()
        self._written.clear()

    def _write_page(self, page: _ArchivedPage, row: WebPage | None) -> str:
        """Write a page into its row; return the reason if it is not written."""
        if self._written.get(page.key, -1) >= page.time:
            return "not_newer"
        if page.key in self._written:
            self._sink.flush()
            self._written.clear()
            row = self._store.get(page.key, self._fields)
        if row is None:
            row = WebPage()
            row.fetch_interval, row.score = self._interval, self._score
            row.fetch_time = page.time
            row.markers[Mark.DISTANCE] = "0"
            self._scoring.injected_score(page.response.url, row)
        elif row.status not in _UNFETCHED and page_fetch_time(row) >= page.time:
            return "not_newer"
        batch = row.markers.get(Mark.GENERATE)
        if batch not in (None, self._batch_id):
            return "in_another_batch"
        if page.record.kind == "revisit" and not self._restore_content(page):
            return "revisit_without_original"
        if digest := page.record.headers.get("warc-payload-digest", ""):
            self._digests.setdefault(digest, page.key)
            if len(self._digests) > _MAX_DIGESTS:
                self._digests.popitem(last=False)
        row.markers[Mark.GENERATE] = row.batch_id = self._batch_id
        self._time = page.time
        item = FetchItem(page.key, unreverse_url(page.key), row)
        status = get_protocol_status(item.url, page.response, self._max_url_length)
        self._pages.store([FetchedPage(item, page.response, status)])
        return ""

    def _restore_content(self, page: _ArchivedPage) -> bool:
        """Give a revisit the content of its original, which must be in the table; return whether it has it."""
        headers = page.record.headers
        is_unchanged = page.response.status == 304
        if is_unchanged:
            key = page.key
        else:
            key = self._digests.get(headers.get("warc-payload-digest", ""), "")
            if not key:
                try:
                    key = reverse_url(self._normalize(headers.get("warc-refers-to-target-uri", "")) or "")
                except ValueError:
                    return False
        if key in self._written:
            self._sink.flush()
            self._written.clear()
        original = self._store.get(key, {WebPage.content})
        if original is None or original.content is None:
            return False
        if not is_unchanged:
            page.response.content = original.content
        return True

    def _write_item(self, item: FetchItem) -> None:
        item.page.fetch_time = self._time
        self.counts["pages"] += 1
        self._written[item.key] = self._time
        self._sink(item)


_OTHER_KINDS = frozenset({"warcinfo", "request", "metadata", "conversion", "continuation"})


def import_pages(
    conf: Configuration,
    paths: Iterable[Path],
    *,
    input_format: str = "auto",
    batch_id: str = "",
    filter_urls: bool = True,
    normalize: bool = True,
) -> ImportResult:
    """Import files and all files of folders.

    Args:
        conf: Configuration of the crawl.
        paths: Files and folders.
        input_format: One of :data:`nutch2py.jobs.page_import.url_lists.INPUT_FORMATS`.
        batch_id: Batch of the pages, "" for a new one. An interrupted import continues with its own.
        filter_urls: Whether to apply URL filters.
        normalize: Whether to apply URL normalizers.

    Raises:
        InputError: A file does not exist or is not readable.
    """
    formats: dict[Path, str] = {}
    for path in paths:
        for file in find_seed_files(path):
            formats[file] = detect_format(file) if input_format == "auto" else input_format
    archives = [path for path, name in formats.items() if name in ("warc", "wacz")]
    lists = [(path, name) for path, name in formats.items() if name not in ("warc", "wacz")]
    counts: Counter[str] = Counter()
    result = ImportResult()
    if archives:
        result.batch_id = batch_id or new_batch_id()
        log_line(f"Import: starting, batch {result.batch_id}")
        importer = _PageImporter(conf, result.batch_id, counts, filter_urls=filter_urls, normalize=normalize)
        with open_job(conf, FETCH_REDIRECTS, creates_table=True, batch_id=result.batch_id) as tables:
            batches: BatchListStore = tables.batch_lists
            batches.set_state(result.batch_id, BatchState.GENERATED)
            sink = PageSink(tables.store, conf, tables.check_lock, lambda _: None, is_parsed=False, lists_all_rows=True)
            with sink:
                importer.run(tables.store, sink, archives)
    if lists:
        with temp_dir("input") as folder:
            seeds = folder / "seeds.txt"
            with seeds.open("wb") as lines:
                for path, name in lists:
                    result.seeds += write_seed_lines(path, name, lines, counts)
            inject(conf, str(seeds), filter_urls=filter_urls, normalize=normalize)
    result.pages = counts.pop("pages", 0)
    result.skipped = dict(sorted(counts.items()))
    _log_summary(result)
    return result


_REASONS = {
    "warcinfo": "warcinfo records",
    "request": "requests",
    "metadata": "metadata records",
    "conversion": "conversions",
    "continuation": "continuations of segments",
    "other_record": "records of other types",
    "no_date": "without a date",
    "no_length": "without a length",
    "wrong_length": "with a wrong length",
    "header_too_long": "with a header that is too long",
    "truncated": "truncated",
    "damaged_gzip": "damaged parts of gzip",
    "damaged_zip": "damaged ZIP files or members",
    "not_a_record": "parts that are no record",
    "not_http": "without an HTTP response",
    "malformed_url": "with a malformed URL",
    "other_protocol": "of protocols that are not enabled",
    "filtered": "rejected by URL filters or normalizers",
    "not_newer": "not newer than the row",
    "in_another_batch": "whose row is in another open batch",
    "revisit_without_original": "revisits whose original is not in the table",
    "malformed_line": "malformed lines",
}


def _log_summary(result: ImportResult) -> None:
    if result.batch_id:
        log_line(f"Import: {result.pages} {'page' if result.pages == 1 else 'pages'} in batch {result.batch_id}")
    if result.skipped:
        skipped = ", ".join(f"{count} {_REASONS.get(name, name)}" for name, count in result.skipped.items())
        log_line(f"Import: skipped: {skipped}")
    if result.pages:
        log_line(f"Import: next: nutch2py parse {result.batch_id}, then nutch2py updatedb {result.batch_id}")
