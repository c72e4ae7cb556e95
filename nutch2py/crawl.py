"""Crawl: a crawl as a Python object. Every job is a method that takes its parameters and returns what it did.

    with Crawl("embedded:crawldata", {"http.agent.name": "my-crawler"}) as crawl:
        crawl.inject("seeds.txt")
        batch, urls = crawl.generate(top_n=1000)

Nothing is printed; what the jobs say goes to the callbacks of :class:`nutch2py.reporting.Reporter`. Failures are the
errors of :mod:`nutch2py.errors`. The command line is written on this class, so what a command does a program can do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nutch2py.conf import Configuration
from nutch2py.reporting import Progress, Reporter, reporting_to

if TYPE_CHECKING:
    from nutch2py.jobs.batch_report import BatchReport
    from nutch2py.jobs.generate import GenerateResult
    from nutch2py.jobs.pagerank import PageRankResult
    from nutch2py.jobs.readdb_stats import StatsCollector
    from nutch2py.mapreduce.driver import JobResult
    from nutch2py.record import Field, Record
    from nutch2py.search.results import SearchResult
    from nutch2py.search.searcher import EmbeddedSearcher
    from nutch2py.table import DataStore
    from nutch2py.webpage import Host, Mark, WebPage

    R = TypeVar("R", bound=Record)

PRINTING = None
"""In the place of a reporter: jobs print, as commands do."""


class Crawl:
    """One crawl: its tables, its jobs, its index. A context manager that closes what it has opened.

    ``where``: a Configuration, or what stands in ``storage.data.store`` (``embedded:FOLDER``, ``hbase://HOST:PORT``)
    over the shipped defaults and ``NUTCH_CONF_DIR``; ``properties`` go before both. ``crawl_id`` names the tables.
    ``on_line``, ``on_warning`` and ``on_progress`` take what jobs say; progress comes from another thread, twice a
    second.
    """

    def __init__(
        self,
        where: Configuration | str,
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
        from nutch2py.table.opening import fix_location

        fix_location(self.conf)
        self._reporter: Reporter | None = Reporter(on_line, on_warning, on_progress)
        self._open = ExitStack()
        self._searcher: EmbeddedSearcher | None = None

    @classmethod
    def printing(cls, conf: Configuration) -> Crawl:
        """Return a crawl whose jobs print their lines, warnings and progress, as the commands do."""
        crawl = cls(conf)
        crawl._reporter = PRINTING
        return crawl

    def _reporting(self) -> AbstractContextManager[None]:
        return nullcontext() if self._reporter is None else reporting_to(self._reporter)

    # the jobs of a round

    def inject(self, seeds: str | Path | Iterable[str]) -> JobResult:
        """Put seeds into the table, which is made if need be: a file, a folder, ``hdfs://…``, or an iterable of lines.

        Counters are in the group ``injector``. Raise :class:`~nutch2py.errors.InputError` when nothing is there.
        """
        from nutch2py.jobs.inject import inject

        with self._reporting(), _seed_path(seeds) as path:
            return inject(self.conf, path)

    def generate(
        self,
        *,
        top_n: int = 0,
        add_days: float = 0,
        filter_urls: bool = True,
        normalize: bool = True,
        sitemap: bool = False,
        batch_id: str = "",
    ) -> GenerateResult:
        """Make a batch of what is due; unpacks as its id and the number of URLs, which is 0 when nothing is due.

        ``top_n``: URLs at most, 0 for any number; ``add_days``: as if it were so many days later.
        """
        from nutch2py.jobs.generate import generate

        with self._reporting():
            return generate(
                self.conf,
                top_n=top_n,
                add_days=add_days,
                filter_urls=filter_urls,
                normalize=normalize,
                sitemap=sitemap,
                batch_id=batch_id,
            )

    def fetch(
        self,
        batch_id: str,
        *,
        threads: int = 0,
        resume: bool = False,
        num_tasks: int = 0,
        sitemap: bool = False,
        detect_sitemaps: bool = False,
        warc: str | Path = "",
    ) -> JobResult:
        """Fetch a batch (``-all``: every batch); counters are in the group ``FetcherStatus``.

        ``threads``: requests at a time in a task, 0 for ``fetcher.threads.fetch``; ``warc``: a folder for WARC files.
        Raise :class:`~nutch2py.errors.UnknownBatchError` when there is no such batch, here and in the jobs after it.
        """
        from nutch2py.jobs.fetch import fetch

        with self._reporting():
            return fetch(
                self.conf,
                batch_id,
                threads=threads,
                resume=resume,
                num_tasks=num_tasks,
                sitemap=sitemap,
                detect_sitemaps=detect_sitemaps,
                warc=str(warc),
            )

    def parse(self, batch_id: str, *, resume: bool = False, force: bool = False, sitemap: bool = False) -> JobResult:
        """Parse a batch (``-all``: every batch); counters are in the group ``ParserStatus``."""
        from nutch2py.jobs.parse import parse

        with self._reporting():
            return parse(self.conf, batch_id, resume=resume, force=force, sitemap=sitemap)

    def updatedb(self, batch_id: str) -> JobResult:
        """Take what a batch found into the table (``-all``: every batch); counters are in the group ``updatedb``."""
        from nutch2py.jobs.updatedb import updatedb

        with self._reporting():
            return updatedb(self.conf, batch_id)

    def index(self, batch_id: str) -> JobResult:
        """Index a batch, every updated row (``-all``) or every parsed one (``-reindex``); group ``IndexerStatus``."""
        from nutch2py.jobs.index import index

        with self._reporting():
            return index(self.conf, batch_id)

    # the whole table

    def pagerank(self) -> PageRankResult:
        """Compute the PageRank of every page, as ``pagerank.*`` say."""
        from nutch2py.jobs.pagerank import pagerank

        with self._reporting():
            return pagerank(self.conf)

    def dedup(self, *, near: bool = False) -> JobResult:
        """Mark pages that are equal to a better one, with ``near`` those nearly equal, too."""
        from nutch2py.jobs.dedup import dedup

        with self._reporting():
            return dedup(self.conf, near=near)

    def clean(self, *, commit: bool = True) -> JobResult:
        """Delete from the index what is gone, redirected, duplicate or not to be indexed."""
        from nutch2py.jobs.clean import clean

        with self._reporting():
            return clean(self.conf, commit=commit)

    def hostinject(self, hosts: str | Path) -> JobResult:
        """Put settings of hosts into the host table: a file or a folder."""
        from nutch2py.jobs.hostdb import hostinject

        with self._reporting():
            return hostinject(self.conf, str(hosts))

    def updatehostdb(self, *, links: bool = False) -> JobResult:
        """Count the pages of every host, with ``links`` the links between hosts, too."""
        from nutch2py.jobs.hostdb import updatehostdb

        with self._reporting():
            return updatehostdb(self.conf, links)

    # what is there

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
        """Yield the row key and the row of pages, in key order; :func:`nutch2py.url.keys.unreverse_url` gives the URL.

        ``fields``: what is read (all when None); another field of the row raises ``FieldNotReadError``. Rows with keys
        from ``start`` up to ``stop`` (excluded), or those of one ``host``, with the ``mark``, of the batch if it is
        named.
        """
        from nutch2py.table import KeyRange, MarkCondition, Query, prefix_range
        from nutch2py.url.keys import reverse_host
        from nutch2py.webpage import WebPage

        condition = None if mark is None else MarkCondition(mark, batch_id)
        key_range = prefix_range(f"{reverse_host(host)}:") if host else KeyRange(start, stop)
        wanted = None if fields is None else frozenset(fields)
        return self._table(WebPage).scan(Query(wanted, key_range, condition))

    def page(self, url: str, fields: Iterable[Field[Any]] | None = None) -> WebPage | None:
        """Return the row of a URL, None when there is none; raise ValueError when it is no URL."""
        from nutch2py.url.keys import reverse_url
        from nutch2py.webpage import WebPage

        return self._table(WebPage).get(reverse_url(url), fields)

    def hosts(self) -> Iterator[tuple[str, Host]]:
        """Yield the name and the row of every host that the host table has, in the order of reversed names."""
        from nutch2py.table import Query
        from nutch2py.url.keys import unreverse_host
        from nutch2py.webpage import Host

        store = self._opened(Host)
        for key, host in store.scan(Query()) if store.exists() else ():
            yield unreverse_host(key), host

    def stats(self, *, by_host: bool = False) -> StatsCollector:
        """Count the rows by status, retries, protocol and parse status, with bounds of the score."""
        from nutch2py.jobs.readdb import collect_stats

        with self._reporting():
            return collect_stats(self.conf, by_host)

    def batches(self) -> list[BatchReport]:
        """Return the batches that are open: state, since when, how many rows, how many of them done, who is at work."""
        from nutch2py.jobs.batch_report import open_batches

        with self._reporting():
            return open_batches(self.conf)

    def search(self, query: str, *, start: int = 0, rows: int = 10) -> SearchResult:
        """Ask the index; raise :class:`~nutch2py.errors.IndexingError` when there is none or it is empty."""
        from nutch2py.search.search import search, search_backend
        from nutch2py.search.searcher import EmbeddedSearcher

        with self._reporting():
            if self._searcher is None and search_backend(self.conf) == "embedded":
                self._searcher = EmbeddedSearcher(self.conf)
            return search(self.conf, query, start, rows, self._searcher)

    def close(self) -> None:
        """Give back connections and files; the crawl can be used again."""
        self._open.close()
        self._searcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self, record: type[R]) -> DataStore[R]:
        from nutch2py.table import open_store

        store = open_store(self.conf, record)
        self._open.callback(store.close)
        return store

    def _table(self, record: type[R]) -> DataStore[R]:
        """Return a table of the crawl, whatever a killed job left finished."""
        from nutch2py.jobs.beginning import begin
        from nutch2py.jobs.works import READ

        with self._reporting(), begin(self.conf, READ):
            pass
        return self._opened(record)


@contextmanager
def _seed_path(seeds: str | Path | Iterable[str]) -> Iterator[str]:
    """Give the path of seeds; lines are written into a file for as long as the block takes."""
    if isinstance(seeds, str | Path):
        yield str(seeds)
        return
    with tempfile.TemporaryDirectory(prefix="nutch2py-seeds-") as folder:
        path = Path(folder, "seeds.txt")
        path.write_text("".join(f"{line.rstrip()}\n" for line in seeds), encoding="utf-8")
        yield str(path)
