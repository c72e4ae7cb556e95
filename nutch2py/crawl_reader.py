"""CrawlReader: what is in the tables and the index of a crawl, as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.reporting import Progress, Reporter, adopt, reporter, reporting_to

if TYPE_CHECKING:
    from nutch2py.joblog.entry import JobEntry
    from nutch2py.joblog.figures import Figures
    from nutch2py.joblog.overview import Overview
    from nutch2py.jobs.batch_report import BatchReport
    from nutch2py.jobs.readdb_stats import StatsCollector
    from nutch2py.record import Field, Record
    from nutch2py.search.results import SearchResult
    from nutch2py.search.searcher import EmbeddedSearcher
    from nutch2py.table import DataStore
    from nutch2py.webpage import Host, Mark, WebPage

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
    def printing(cls, conf: Configuration) -> Self:
        """Return a crawl whose jobs print what they say, or give it to who takes it in this thread."""
        crawl = cls(conf)
        crawl._reporter = reporter()
        return crawl

    def __repr__(self) -> str:
        crawl_id = self.conf.get_trimmed("storage.crawl.id")
        named = f", crawl_id={crawl_id!r}" if crawl_id else ""
        return f"{type(self).__name__}({self.conf.get_trimmed('storage.data.store')!r}{named})"

    def _reporting(self) -> AbstractContextManager[None]:
        return reporting_to(self._reporter)

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
        :class:`~nutch2py.record.FieldNotReadError`. ``start``, ``stop``: row keys, as
        :func:`nutch2py.url.keys.reverse_url` gives them, from the first up to the last, which is left out; or ``host``:
        the pages of a host. ``mark``: rows that carry the mark, with ``batch_id`` that of the batch.
        """
        from nutch2py.table import KeyRange, MarkCondition, Query, prefix_range
        from nutch2py.url.keys import name_of_key
        from nutch2py.webpage import Mark, WebPage

        if host and (start or stop):
            raise ValueError("host is a range of keys: give host, or start and stop")
        if batch_id is not None and mark is None:
            raise ValueError("batch_id is the value of a mark: name the mark, too")
        if mark is not None and mark not in [*Mark]:
            raise ValueError(f"mark is {mark!r}: give one of nutch2py.Mark, such as Mark.FETCH")
        condition = None if mark is None else MarkCondition(Mark(mark), batch_id)
        key_range = prefix_range(f"{_host_key(host)}:") if host else KeyRange(start, stop)
        self._begin()
        rows = self._told(self._table(WebPage).scan(Query(_set(fields), key_range, condition)))
        return ((name_of_key(key), page) for key, page in rows)

    def page(self, url: str, fields: Iterable[Field[Any]] | None = None) -> WebPage | None:
        """Return the row of a URL, None when there is none; raise InputError when it is no URL."""
        from nutch2py.url.keys import reverse_url
        from nutch2py.webpage import WebPage

        try:
            key = reverse_url(url)
        except ValueError as error:
            raise InputError(f"{url} is not a URL: {error}") from error
        self._begin()
        with self._reporting():
            return self._table(WebPage).get(key, _set(fields))

    def hosts(
        self, *, fields: Iterable[Field[Any]] | None = None, start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, Host]]:
        """Yield the name and the row of hosts that the host table has, in the order of row keys (``org.example.www``).

        ``fields``, ``start`` and ``stop`` are as in :meth:`pages`.
        """
        from nutch2py.table import KeyRange, Query
        from nutch2py.url.keys import name_of_key, unreverse_host

        store = self._host_table()
        if store is None:
            return iter(())
        rows = self._told(store.scan(Query(_set(fields), KeyRange(start, stop))))
        return ((name_of_key(key, unreverse_host), host) for key, host in rows)

    def host(self, name: str, fields: Iterable[Field[Any]] | None = None) -> Host | None:
        """Return the row of a host, None when the host table has none."""
        store = self._host_table()
        with self._reporting():
            return None if store is None else store.get(_host_key(name), _set(fields))

    def stats(self, *, by_host: bool = False, exact: bool = False) -> StatsCollector:
        """Count the rows by status, retries, protocol and parse status, ``by_host`` too, with bounds of the score.

        By the figures that jobs keep with the table, if they do; ``exact`` reads every row, and so does ``by_host``.
        """
        from nutch2py.jobs.readdb import collect_stats

        with self._reporting():
            return collect_stats(self.conf, by_host, exact)

    def batches(self, *, count: bool = True) -> list[BatchReport]:
        """Return the batches that are open, in the order of their ids: how far each is, and who is at work on it.

        Without ``count`` no row of them is read: the state is then that of the batch's own record, ``done`` None.
        """
        from nutch2py.jobs.batch_report import open_batches

        with self._reporting():
            return open_batches(self.conf, count)

    def jobs(self, limit: int = 100, before: str | None = None) -> list[JobEntry]:
        """Return the entries of the job log, the newest first: ``limit`` at most, ``before`` the entry of this id."""
        from nutch2py.jobs.watching import logged_jobs

        with self._reporting():
            return logged_jobs(self.conf, limit, before)

    def job(self, entry_id: str) -> JobEntry | None:
        """Return one entry of the job log, None when there is none of this id."""
        from nutch2py.jobs.watching import logged_job

        with self._reporting():
            return logged_job(self.conf, entry_id)

    def figures(self) -> Figures | None:
        """Return the figures of the table, which costs no scan; None where nothing is kept or was counted."""
        from nutch2py.jobs.watching import figures

        with self._reporting():
            return figures(self.conf)

    def overview(self) -> Overview | None:
        """Return what the jobs that read every row have seen of the crawl as a whole; None before the first has."""
        from nutch2py.jobs.watching import overview

        with self._reporting():
            return overview(self.conf)

    def search(self, query: str, *, start: int = 0, rows: int = 10) -> SearchResult:
        """Ask the index for ``rows`` hits from ``start`` on, in the language of the command search.

        Raise :class:`~nutch2py.errors.IndexingError` when there is no index or it is empty.
        """
        from nutch2py.search.search import search, search_backend
        from nutch2py.search.searcher import EmbeddedSearcher

        with self._reporting():
            if search_backend(self.conf) != "embedded":
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

    def _begin(self) -> None:
        """Make the crawl ready to be read: it is there, and what a killed job had finished is written."""
        from nutch2py.jobs.beginning import begin
        from nutch2py.jobs.works import READ

        with self._reporting(), begin(self.conf, READ):
            pass

    def _table(self, record: type[R]) -> DataStore[R]:
        """Return a table, which stays open until :meth:`close`."""
        from nutch2py.table import open_store

        if record not in self._stores:
            with self._reporting():
                self._stores[record] = open_store(self.conf, record)
        return self._stores[record]

    def _host_table(self) -> DataStore[Host] | None:
        """Return the host table; None when the crawl has none, and raise StoreError when there is no crawl."""
        from nutch2py.webpage import Host

        store = self._table(Host)
        if store.exists():
            return store
        self._begin()
        return None

    def _told(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield rows; what reading them has to say goes to the callbacks, wherever they are iterated."""
        context = copy_context()
        context.run(adopt, self._reporter)
        while (row := context.run(next, rows, None)) is not None:
            yield row


def _set(fields: Iterable[Field[Any]] | None) -> frozenset[Field[Any]] | None:
    return None if fields is None else frozenset(fields)


def _host_key(host: str) -> str:
    from nutch2py.url.keys import reverse_host

    return host if host.startswith("[") else reverse_host(host)
