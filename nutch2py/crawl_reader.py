"""CrawlReader: Python interface to the tables and the index of a crawl, for reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from contextvars import copy_context
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.records.record import RecordField
from nutch2py.support.reporting import Progress, Reporter, current_reporter, set_reporter, use_reporter

if TYPE_CHECKING:
    import pyarrow

    from nutch2py.joblog.crawl_overview import Overview
    from nutch2py.joblog.job_entry import JobEntry
    from nutch2py.joblog.table_stats import TableStats
    from nutch2py.jobs.monitoring.batch_report import BatchReport
    from nutch2py.jobs.stats.stats_collector import StatsCollector
    from nutch2py.records.record import Record
    from nutch2py.records.webpage import Host, Mark, WebPage
    from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
    from nutch2py.search.results.search_results import SearchResult
    from nutch2py.table import DataStore, TableQuery

T = TypeVar("T")
R = TypeVar("R", bound="Record")


class CrawlReader:
    """Reads a crawl; :class:`nutch2py.crawl.Crawl` adds the jobs, and documents the arguments."""

    conf: Configuration
    """The properties, as a copy of the given configuration. Changes apply to later method calls."""

    def __init__(
        self,
        where: Configuration | str | None = None,
        properties: Mapping[str, str | float | bool] | None = None,
        *,
        crawl_id: str = "",
        on_line: Callable[[str], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.conf = where.copy() if isinstance(where, Configuration) else Configuration.load()
        if isinstance(where, str):
            self.conf.set("storage.data.store", where)
        for name, value in (properties or {}).items():
            self.conf.set(name, value)
        if crawl_id:
            self.conf.set("storage.crawl.id", crawl_id)
        self.conf.check_numbers()
        self._reporter: Reporter | None = Reporter(on_line, on_warning, on_progress)
        self._finishes_updates = True
        self._stores: dict[type[Record], DataStore[Any]] = {}
        self._searcher: EmbeddedSearcher | None = None

    @classmethod
    def for_console(cls, conf: Configuration) -> Self:
        """Return a crawl whose jobs print their output, or pass it to the current reporter of this thread."""
        crawl = cls(conf)
        crawl._reporter = current_reporter()
        return crawl

    @classmethod
    def for_server(cls, conf: Configuration) -> Self:
        """Return a crawl for requests that only read: it leaves the interrupted updates of killed jobs to jobs."""
        crawl = cls(conf)
        crawl._finishes_updates = False
        return crawl

    def __repr__(self) -> str:
        crawl_id = self.conf.get_trimmed("storage.crawl.id")
        named = f", crawl_id={crawl_id!r}" if crawl_id else ""
        return f"{type(self).__name__}({self.conf.get_trimmed('storage.data.store')!r}{named})"

    def _use_reporter(self) -> AbstractContextManager[None]:
        return use_reporter(self._reporter)

    def pages(
        self,
        *,
        fields: Iterable[RecordField] | None = None,
        start: str = "",
        stop: str = "",
        host: str = "",
        mark: Mark | None = None,
        batch_id: str | None = None,
    ) -> Iterator[tuple[str, WebPage]]:
        """Yield the URL and the row of pages, in the order of row keys; the row key if it has no URL.

        Args:
            fields: The fields to read, all when None; access to another field raises
                :class:`~nutch2py.records.record.FieldNotReadError`.
            start: The first row key, as :func:`nutch2py.url.keys.reverse_url` returns it.
            stop: The row key before which to stop.
            host: Only the pages of this host, instead of ``start`` and ``stop``.
            mark: Only rows that carry this mark.
            batch_id: Only rows with the mark of this batch.
        """
        from nutch2py.records.webpage import Mark
        from nutch2py.table import KeyRange, MarkCondition, TableQuery, host_range
        from nutch2py.url.keys import url_or_key

        if host and (start or stop):
            raise ValueError("host is a range of keys: give either host, or start and stop")
        if batch_id is not None and mark is None:
            raise ValueError("batch_id is the value of a mark: give mark, too")
        if mark is not None and mark not in [*Mark]:
            raise ValueError(f"mark is {mark!r}: give one of nutch2py.Mark, such as Mark.FETCH")
        condition = None if mark is None else MarkCondition(Mark(mark), batch_id)
        key_range = host_range(host) if host else KeyRange(start, stop)
        rows = self._scan_pages(TableQuery(_field_set(fields), key_range, condition))
        return ((url_or_key(key), page) for key, page in rows)

    def to_arrow(
        self,
        *,
        fields: Sequence[str] = (),
        where: Sequence[str] = (),
        host: str = "",
        changed_since: str | int | Path = 0,
        all_rows: bool = False,
    ) -> pyarrow.Table:
        """Return fetched pages as an Arrow table (extra ``export``): ``crawl.to_arrow().to_pandas()``.

        It is held in memory; :meth:`nutch2py.Crawl.export_pages` writes files, which need not fit. The arguments are
        those of that method. Unreadable rows are left out with a warning.

        Raises:
            ConfigurationError: pyarrow is not installed.
            UsageError: A field, condition or time is invalid.
        """
        from nutch2py.jobs.export import arrow_tables
        from nutch2py.jobs.export.export_job import RowExporter, make_parameters
        from nutch2py.table import TableQuery, host_range
        from nutch2py.table.row_validation import RowValidator

        pyarrow = arrow_tables.require_pyarrow("Crawl.to_arrow")
        parameters = make_parameters("arrow", fields, where, all_rows=all_rows, changed_since=changed_since)
        schema, validator = arrow_tables.make_schema(parameters.columns), RowValidator()
        with closing(RowExporter(self.conf, parameters)) as exporter:
            scanned = self._scan_pages(TableQuery(exporter.fields, host_range(host)))
            pages = (each for each in scanned if validator.is_valid(*each))
            rows = (row for key, page in pages if isinstance(row := exporter.export_row(key, page), dict))
            tables = list(arrow_tables.rows_to_tables(rows, schema))
        return pyarrow.concat_tables([schema.empty_table(), *tables])

    def links(self, host: str = "") -> Iterator[tuple[str, str, str]]:
        """Return the links between pages of the table as (source URL, target URL, anchor text), by target.

        They are the inlinks that updatedb wrote. ``host``: only links to pages of this host. For networkx:
        ``graph.add_edges_from((source, target) for source, target, _ in crawl.links())``.
        """
        from nutch2py.records.webpage import WebPage
        from nutch2py.table import TableQuery, host_range
        from nutch2py.url.keys import url_or_key

        key_range = host_range(host)
        pages = self._scan_pages(TableQuery(frozenset({WebPage.inlinks}), key_range))
        return (
            (source, url_or_key(key), anchor) for key, page in pages for source, anchor in page.inlinks.decoded_items()
        )

    def _scan_pages(self, query: TableQuery) -> Iterator[tuple[str, WebPage]]:
        """Return key and row of the pages of a query."""
        from nutch2py.records.webpage import WebPage

        self._open_crawl()
        return self._iterate_reporting(self._open_table(WebPage).scan(query))

    def page(self, url: str, fields: Iterable[RecordField] | None = None) -> WebPage | None:
        """Return the row of a URL, None if there is none; raise InputError for an invalid URL."""
        from nutch2py.records.webpage import WebPage
        from nutch2py.url.keys import reverse_url

        try:
            key = reverse_url(url)
        except ValueError as error:
            raise InputError(f"{url} is not a URL: {error}") from error
        self._open_crawl()
        with self._use_reporter():
            return self._open_table(WebPage).get(key, _field_set(fields))

    def hosts(
        self, *, fields: Iterable[RecordField] | None = None, start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, Host]]:
        """Yield the name and the row of hosts in the host table, in the order of row keys (``org.example.www``).

        ``fields``, ``start`` and ``stop`` are as in :meth:`pages`.
        """
        from nutch2py.table import KeyRange, TableQuery
        from nutch2py.url.keys import unreverse_host, url_or_key

        store = self._open_host_table()
        if store is None:
            return iter(())
        rows = self._iterate_reporting(store.scan(TableQuery(_field_set(fields), KeyRange(start, stop))))
        return ((url_or_key(key, unreverse_host), host) for key, host in rows)

    def host(self, name: str, fields: Iterable[RecordField] | None = None) -> Host | None:
        """Return the row of a host, None if the host table has none."""
        store = self._open_host_table()
        with self._use_reporter():
            return None if store is None else store.get(_host_key(name), _field_set(fields))

    def stats(self, *, by_host: bool = False, exact: bool = False) -> StatsCollector:
        """Count the rows by status, retries, protocol and parse status, optionally by host, with bounds of the score.

        Uses the table statistics if they exist. ``exact`` and ``by_host`` read every row.
        """
        from nutch2py.jobs.readdb.readdb_commands import collect_stats

        with self._use_reporter():
            return collect_stats(self.conf, by_host, exact)

    def batches(self, *, count: bool = True) -> list[BatchReport]:
        """Return the open batches in the order of their ids, each with its state and its running jobs.

        Without ``count`` no row is read: the state is then that of the batch record, and ``done`` is None.
        """
        from nutch2py.jobs.monitoring.batch_report import list_open_batches

        with self._use_reporter():
            return list_open_batches(self.conf, count, self._finishes_updates)

    def jobs(self, limit: int = 100, before: str | None = None) -> list[JobEntry]:
        """Return the entries of the job log, newest first: at most ``limit``, older than the entry ``before``."""
        from nutch2py.jobs.monitoring.crawl_queries import list_job_entries

        with self._use_reporter():
            return list_job_entries(self.conf, limit, before)

    def job(self, entry_id: str) -> JobEntry | None:
        """Return an entry of the job log, None if it is unknown."""
        from nutch2py.jobs.monitoring.crawl_queries import get_job_entry

        with self._use_reporter():
            return get_job_entry(self.conf, entry_id)

    def table_stats(self) -> TableStats | None:
        """Return the table statistics, without a scan; None if none are stored."""
        from nutch2py.jobs.monitoring.crawl_queries import get_table_stats

        with self._use_reporter():
            return get_table_stats(self.conf)

    def overview(self) -> Overview | None:
        """Return statistics of the whole crawl from the last full table scans; None before the first."""
        from nutch2py.jobs.monitoring.crawl_queries import get_overview

        with self._use_reporter():
            return get_overview(self.conf)

    def search(self, query: str, *, start: int = 0, rows: int = 10) -> SearchResult:
        """Search the index for ``rows`` hits from ``start`` on, in the query language of the command search.

        Raise :class:`~nutch2py.errors.IndexingError` when the index does not exist or is empty.
        """
        from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
        from nutch2py.search.search_backends import search, search_backend_name

        with self._use_reporter():
            if search_backend_name(self.conf) != "embedded":
                return search(self.conf, query, start, rows)
            # reopened for documents that were indexed since
            self._searcher = EmbeddedSearcher(self.conf) if self._searcher is None else self._searcher.reopen()
            return search(self.conf, query, start, rows, self._searcher)

    def close(self) -> None:
        """Close connections and files; the crawl can be used again."""
        stores, self._stores, self._searcher = self._stores, {}, None
        for store in stores.values():
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_crawl(self) -> None:
        """Check that the crawl exists, and finish the interrupted updates of killed jobs."""
        from nutch2py.jobs.job_context import open_job
        from nutch2py.jobs.locking.lock_scopes import READ

        with self._use_reporter(), open_job(self.conf, READ, finishes_updates=self._finishes_updates):
            pass

    def _open_table(self, record: type[R]) -> DataStore[R]:
        """Return a table, which stays open until :meth:`close`."""
        from nutch2py.table import open_store

        if record not in self._stores:
            with self._use_reporter():
                self._stores[record] = open_store(self.conf, record)
        return self._stores[record]

    def _open_host_table(self) -> DataStore[Host] | None:
        """Return the host table, None if the crawl has none; raise StoreError if the crawl does not exist."""
        from nutch2py.records.webpage import Host

        store = self._open_table(Host)
        if store.exists():
            return store
        self._open_crawl()
        return None

    def _iterate_reporting(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield rows; messages of the read go to the callbacks, in whatever context the rows are iterated."""
        context = copy_context()
        context.run(set_reporter, self._reporter)
        while (row := context.run(next, rows, None)) is not None:
            yield row


def _field_set(fields: Iterable[RecordField] | None) -> frozenset[RecordField] | None:
    return None if fields is None else frozenset(fields)


def _host_key(host: str) -> str:
    from nutch2py.url.keys import reverse_host

    return host if host.startswith("[") else reverse_host(host)
