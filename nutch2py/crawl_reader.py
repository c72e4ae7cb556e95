"""CrawlReader: what is in the tables and the index of a crawl, as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.support.reporting import Progress, Reporter, current_reporter, set_reporter, use_reporter

if TYPE_CHECKING:
    from nutch2py.joblog.crawl_overview import Overview
    from nutch2py.joblog.job_entry import JobEntry
    from nutch2py.joblog.table_stats import TableStats
    from nutch2py.jobs.monitoring.batch_report import BatchReport
    from nutch2py.jobs.stats.stats_collector import StatsCollector
    from nutch2py.records.record import Field, Record
    from nutch2py.records.webpage import Host, Mark, WebPage
    from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
    from nutch2py.search.results.search_results import SearchResult
    from nutch2py.table import DataStore

T = TypeVar("T")
R = TypeVar("R", bound="Record")


class CrawlReader:
    """What can be read of a crawl; :class:`nutch2py.crawl.Crawl` adds the jobs, and says what the arguments are."""

    conf: Configuration
    """The properties: a copy of those given. What is set here holds for the methods that are called after it."""

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
        self._stores: dict[type[Record], DataStore[Any]] = {}
        self._searcher: EmbeddedSearcher | None = None

    @classmethod
    def for_console(cls, conf: Configuration) -> Self:
        """Return a crawl whose jobs print what they say, or give it to who takes it in this thread."""
        crawl = cls(conf)
        crawl._reporter = current_reporter()
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
        fields: Iterable[Field[Any]] | None = None,
        start: str = "",
        stop: str = "",
        host: str = "",
        mark: Mark | None = None,
        batch_id: str | None = None,
    ) -> Iterator[tuple[str, WebPage]]:
        """Yield the URL and the row of pages, in the order of row keys; the row key where that is no URL's.

        ``fields``: what is read, all when None; to look at another field raises
        :class:`~nutch2py.records.record.FieldNotReadError`. ``start``, ``stop``: row keys, as
        :func:`nutch2py.url.keys.reverse_url` gives them, from the first up to the last, which is left out; or ``host``:
        the pages of a host. ``mark``: rows that carry the mark, with ``batch_id`` that of the batch.
        """
        from nutch2py.records.webpage import Mark, WebPage
        from nutch2py.table import KeyRange, MarkCondition, TableQuery, prefix_range
        from nutch2py.url.keys import url_or_key

        if host and (start or stop):
            raise ValueError("host is a range of keys: give host, or start and stop")
        if batch_id is not None and mark is None:
            raise ValueError("batch_id is the value of a mark: name the mark, too")
        if mark is not None and mark not in [*Mark]:
            raise ValueError(f"mark is {mark!r}: give one of nutch2py.Mark, such as Mark.FETCH")
        condition = None if mark is None else MarkCondition(Mark(mark), batch_id)
        key_range = prefix_range(f"{_host_key(host)}:") if host else KeyRange(start, stop)
        self._open_crawl()
        rows = self._iterate_reporting(
            self._open_table(WebPage).scan(TableQuery(_field_set(fields), key_range, condition))
        )
        return ((url_or_key(key), page) for key, page in rows)

    def page(self, url: str, fields: Iterable[Field[Any]] | None = None) -> WebPage | None:
        """Return the row of a URL, None when there is none; raise InputError when it is no URL."""
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
        self, *, fields: Iterable[Field[Any]] | None = None, start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, Host]]:
        """Yield the name and the row of hosts that the host table has, in the order of row keys (``org.example.www``).

        ``fields``, ``start`` and ``stop`` are as in :meth:`pages`.
        """
        from nutch2py.table import KeyRange, TableQuery
        from nutch2py.url.keys import unreverse_host, url_or_key

        store = self._open_host_table()
        if store is None:
            return iter(())
        rows = self._iterate_reporting(store.scan(TableQuery(_field_set(fields), KeyRange(start, stop))))
        return ((url_or_key(key, unreverse_host), host) for key, host in rows)

    def host(self, name: str, fields: Iterable[Field[Any]] | None = None) -> Host | None:
        """Return the row of a host, None when the host table has none."""
        store = self._open_host_table()
        with self._use_reporter():
            return None if store is None else store.get(_host_key(name), _field_set(fields))

    def stats(self, *, by_host: bool = False, exact: bool = False) -> StatsCollector:
        """Count the rows by status, retries, protocol and parse status, ``by_host`` too, with bounds of the score.

        By the figures that jobs keep with the table, if they do; ``exact`` reads every row, and so does ``by_host``.
        """
        from nutch2py.jobs.readdb.readdb_commands import collect_stats

        with self._use_reporter():
            return collect_stats(self.conf, by_host, exact)

    def batches(self, *, count: bool = True) -> list[BatchReport]:
        """Return the batches that are open, in the order of their ids: how far each is, and who is at work on it.

        Without ``count`` no row of them is read: the state is then that of the batch's own record, ``done`` None.
        """
        from nutch2py.jobs.monitoring.batch_report import list_open_batches

        with self._use_reporter():
            return list_open_batches(self.conf, count)

    def jobs(self, limit: int = 100, before: str | None = None) -> list[JobEntry]:
        """Return the entries of the job log, the newest first: ``limit`` at most, ``before`` the entry of this id."""
        from nutch2py.jobs.monitoring.crawl_queries import list_job_entries

        with self._use_reporter():
            return list_job_entries(self.conf, limit, before)

    def job(self, entry_id: str) -> JobEntry | None:
        """Return one entry of the job log, None when there is none of this id."""
        from nutch2py.jobs.monitoring.crawl_queries import get_job_entry

        with self._use_reporter():
            return get_job_entry(self.conf, entry_id)

    def table_stats(self) -> TableStats | None:
        """Return the figures of the table, which costs no scan; None where nothing is kept or was counted."""
        from nutch2py.jobs.monitoring.crawl_queries import get_table_stats

        with self._use_reporter():
            return get_table_stats(self.conf)

    def overview(self) -> Overview | None:
        """Return what the jobs that read every row have seen of the crawl as a whole; None before the first has."""
        from nutch2py.jobs.monitoring.crawl_queries import get_overview

        with self._use_reporter():
            return get_overview(self.conf)

    def search(self, query: str, *, start: int = 0, rows: int = 10) -> SearchResult:
        """Ask the index for ``rows`` hits from ``start`` on, in the language of the command search.

        Raise :class:`~nutch2py.errors.IndexingError` when there is no index or it is empty.
        """
        from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
        from nutch2py.search.search_service import search, search_backend_name

        with self._use_reporter():
            if search_backend_name(self.conf) != "embedded":
                return search(self.conf, query, start, rows)
            if self._searcher is None:
                self._searcher = EmbeddedSearcher(self.conf)
            else:
                self._searcher.reload()  # what was indexed since
            return search(self.conf, query, start, rows, self._searcher)

    def close(self) -> None:
        """Give back connections and files; the crawl can be used again."""
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
        """Make the crawl ready to be read: it is there, and what a killed job had finished is written."""
        from nutch2py.jobs.job_context import open_job
        from nutch2py.jobs.locking.lock_scopes import READ

        with self._use_reporter(), open_job(self.conf, READ):
            pass

    def _open_table(self, record: type[R]) -> DataStore[R]:
        """Return a table, which stays open until :meth:`close`."""
        from nutch2py.table import open_store

        if record not in self._stores:
            with self._use_reporter():
                self._stores[record] = open_store(self.conf, record)
        return self._stores[record]

    def _open_host_table(self) -> DataStore[Host] | None:
        """Return the host table; None when the crawl has none, and raise StoreError when there is no crawl."""
        from nutch2py.records.webpage import Host

        store = self._open_table(Host)
        if store.exists():
            return store
        self._open_crawl()
        return None

    def _iterate_reporting(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield rows; what reading them has to say goes to the callbacks, wherever they are iterated."""
        context = copy_context()
        context.run(set_reporter, self._reporter)
        while (row := context.run(next, rows, None)) is not None:
            yield row


def _field_set(fields: Iterable[Field[Any]] | None) -> frozenset[Field[Any]] | None:
    return None if fields is None else frozenset(fields)


def _host_key(host: str) -> str:
    from nutch2py.url.keys import reverse_host

    return host if host.startswith("[") else reverse_host(host)
