"""Crawl: a crawl as a Python object. Every job is a method that takes its parameters and returns what it did.

    with Crawl("embedded:crawldata", {"http.agent.name": "my-crawler"}) as crawl:
        crawl.inject(["https://www.example.org/"])
        batch = crawl.generate(top_n=1000)

Nothing is printed; what jobs say goes to callbacks. Failures are the errors of :mod:`nutch2py.errors`. The command line
is written on this class, so what a command does a program can do. docs/python.md says what is promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nutch2py.conf.property_ranges import COUNT, DAYS, NumberRange
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import UsageError
from nutch2py.support.temp_dirs import temp_dir

if TYPE_CHECKING:
    from nutch2py.jobs.generate.generate_job import GenerateResult
    from nutch2py.jobs.pagerank.pagerank_job import PageRankResult
    from nutch2py.mapreduce.driver import JobResult


class Crawl(CrawlReader):
    """One crawl: its tables, its jobs, its index. A context manager that closes what it has opened.

    ``where``: a Configuration, or what stands in ``storage.data.store`` (``embedded:FOLDER``, ``hbase://HOST:PORT``)
    over the shipped defaults and ``NUTCH_CONF_DIR``; without it, what these say. ``properties`` go before all.
    ``crawl_id`` names the tables. Nothing is opened or made before a method needs it.

    ``on_line``, ``on_warning`` and ``on_progress`` take what jobs say. They are called from the calling thread and from
    those that a job starts, never two at a time; an exception of theirs is raised by the method that was called.
    ``on_progress`` is called twice a second, and at the end of each MapReduce job.

    One thread at a time may use a crawl; any number of crawls can be used, each in its own thread.
    """

    # the jobs of a round

    def inject(
        self, seeds: str | Path | Iterable[str], *, filter_urls: bool = True, normalize: bool = True
    ) -> JobResult:
        """Put seeds into the table, which is made if need be: a file, a folder, ``hdfs://…``, or an iterable of lines.

        ``filter_urls``, ``normalize``: whether filters and normalizers see them. Counters are in the group
        ``injector``. Raise :class:`~nutch2py.errors.InputError` when no file is there.
        """
        from nutch2py.jobs.inject.inject_job import inject

        with self._use_reporter(), _write_lines_file(seeds) as path:
            return inject(self.conf, path, filter_urls=filter_urls, normalize=normalize)

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
        """Make a batch of what is due; the number of its URLs is 0 when nothing is.

        ``top_n``: URLs at most, 0 for any number; ``add_days``: as if it were so many days later; ``filter_urls``,
        ``normalize``: whether filters and normalizers see them once more; ``sitemap``: sitemaps, and only these;
        ``batch_id``: its id, "" for a new one. Made again, a batch that is open is left as it is. Counters are in the
        group ``generator``.
        """
        from nutch2py.jobs.generate.generate_job import generate

        _check_number("top_n", top_n, COUNT)
        _check_number("add_days", add_days, DAYS)
        with self._use_reporter():
            return generate(
                self.conf,
                top_n=top_n,
                add_days=add_days,
                filter_urls=filter_urls,
                normalize=normalize,
                sitemap=sitemap,
                batch_id=batch_id,
            )

    def freegen(
        self,
        seeds: str | Path | Iterable[str],
        *,
        filter_urls: bool = False,
        normalize: bool = False,
        batch_id: str = "",
    ) -> GenerateResult:
        """Make a batch of the URLs of seeds, as :meth:`inject` takes them, whether they are due or not.

        URLs that the table does not have are injected. ``filter_urls``, ``normalize``: whether filters and normalizers
        see them; ``batch_id`` and counters are those of :meth:`generate`, and of :meth:`inject` what rows were made.
        """
        from nutch2py.jobs.generate.freegen_job import freegen

        with self._use_reporter(), _write_lines_file(seeds) as path:
            return freegen(self.conf, path, filter_urls=filter_urls, normalize=normalize, batch_id=batch_id)

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
        """Fetch a batch (:data:`nutch2py.ALL`: every batch); counters are in the group ``FetcherStatus``.

        ``threads``: requests at a time in a task, 0 for ``fetcher.threads.fetch``; ``resume``: leave out what an
        interrupted fetch has done; ``num_tasks``: fetch tasks, 0 for as many as reduce tasks; ``sitemap``: sitemaps,
        and only these; ``detect_sitemaps``: note those that robots.txt names; ``warc``: a folder for WARC files.
        Raise :class:`~nutch2py.errors.UnknownBatchError` when there is no such batch, here and in the jobs after it.
        """
        from nutch2py.jobs.fetch.fetch_job import fetch

        _check_number("threads", threads, COUNT)
        _check_number("num_tasks", num_tasks, COUNT)
        with self._use_reporter():
            return fetch(
                self.conf,
                batch_id,
                threads=threads,
                resume=resume,
                num_tasks=num_tasks,
                sitemap=sitemap,
                detect_sitemaps=detect_sitemaps,
                warc=str(warc or ""),
            )

    def parse(self, batch_id: str, *, resume: bool = False, force: bool = False, sitemap: bool = False) -> JobResult:
        """Parse a batch (:data:`nutch2py.ALL`: every batch); counters are in the group ``ParserStatus``.

        ``resume``: leave out what an interrupted parse has done, with ``force`` only what no parse has; ``sitemap``:
        sitemaps, and only these.
        """
        from nutch2py.jobs.parse_job import parse

        with self._use_reporter():
            return parse(self.conf, batch_id, resume=resume, force=force, sitemap=sitemap)

    def updatedb(self, batch_id: str) -> JobResult:
        """Take what a batch found into the table (:data:`nutch2py.ALL`: every batch); group ``updatedb``."""
        from nutch2py.jobs.updatedb.updatedb_job import updatedb

        with self._use_reporter():
            return updatedb(self.conf, batch_id)

    def index(self, batch_id: str) -> JobResult:
        """Send a batch to the index; counters are in the group ``IndexerStatus``.

        :data:`nutch2py.ALL`: every row that was updated and not indexed; :data:`nutch2py.REINDEX`: every parsed one;
        :data:`nutch2py.SCORES`: no document, but what :meth:`pagerank` has changed of those in the index.
        """
        from nutch2py.jobs.index.index_job import index

        with self._use_reporter():
            return index(self.conf, batch_id)

    # the whole table

    def pagerank(
        self, *, model: Literal["site", "classic", "linkrank"] | None = None, iterations: int | None = None
    ) -> PageRankResult:
        """Compute the PageRank of every page.

        What is None is as ``pagerank.model`` says, and ``pagerank.iterations`` (``link.analyze.num.iterations`` of
        ``linkrank``).
        """
        from nutch2py.jobs.pagerank.pagerank_job import pagerank

        conf = self.conf.copy()
        if model is not None:
            conf.set("pagerank.model", model)
        if iterations is not None:
            linkrank = conf.get_trimmed("pagerank.model") == "linkrank"
            conf.set("link.analyze.num.iterations" if linkrank else "pagerank.iterations", iterations)
        with self._use_reporter():
            return pagerank(conf)

    def dedup(
        self,
        *,
        group: Literal["none", "host", "domain"] | None = None,
        order: Iterable[str] | None = None,
        near: bool = False,
        threshold: int | None = None,
    ) -> JobResult:
        """Mark pages that are equal to a better one, with ``near`` those nearly equal, too; group ``DeduplicationJob``.

        ``group``: compare the pages of a host, of a domain, or all (none); ``order``: what decides which stays;
        ``threshold``: bits by which SimHashes may differ. What is None is as ``deduplication.*`` say.
        """
        from nutch2py.jobs.dedup_job import dedup

        conf = self.conf.copy()
        if group is not None:
            conf.set("deduplication.group.mode", group)
        if order is not None:
            conf.set("deduplication.compare.order", order if isinstance(order, str) else ",".join(order))
        if threshold is not None:
            conf.set("deduplication.simhash.threshold", threshold)
        with self._use_reporter():
            return dedup(conf, include_near_duplicates=near)

    def clean(self, *, commit: bool = True) -> JobResult:
        """Delete from the index what is gone, redirected, duplicate or not to be indexed; group ``CleaningJob``.

        Without ``commit`` deletes are sent, and the commit is left to others.
        """
        from nutch2py.jobs.index.clean_job import clean

        with self._use_reporter():
            return clean(self.conf, commit=commit)

    def solrdedup(self) -> int:
        """Delete duplicates from the Solr of ``solr.server.url``; return how many documents were deleted."""
        from nutch2py.jobs.index.solrdedup import solrdedup

        with self._use_reporter():
            return solrdedup(self.conf)

    def hostinject(self, hosts: str | Path | Iterable[str]) -> JobResult:
        """Put settings of hosts into the host table: a file, a folder, or lines; group ``hostinject``."""
        from nutch2py.jobs.hostdb.hostdb_jobs import hostinject

        with self._use_reporter(), _write_lines_file(hosts) as path:
            return hostinject(self.conf, path)

    def updatehostdb(self, *, links: bool = False) -> JobResult:
        """Count the pages of every host, with ``links`` the links between hosts, too; group ``updatehostdb``."""
        from nutch2py.jobs.hostdb.hostdb_jobs import updatehostdb

        with self._use_reporter():
            return updatehostdb(self.conf, links)

    def export(self, file: str | Path, *, salvage: bool = False) -> int:
        """Write every cell of the table to a file of JSON lines (gzip: ``.gz``); return the number of rows.

        ``salvage``: of a table that is damaged, what can be read.
        """
        from nutch2py.jobs.table_admin.table_maintenance import export_to_file

        with self._use_reporter():
            return export_to_file(self.conf, Path(file), salvage)

    def check(self) -> int:
        """Look for damage in the tables, and say where it is; return how many troubles there are."""
        from nutch2py.jobs.table_admin.table_maintenance import check_tables

        with self._use_reporter():
            return check_tables(self.conf)

    def due_index(self, *, check: bool = False, drop: bool = False) -> int:
        """Make the index of what is due anew, with the figures of the table; jobs that write wait meanwhile.

        ``check``: compare both with the rows instead; ``drop``: throw both away. Return how many troubles were found.
        """
        from nutch2py.jobs.table_admin.table_maintenance import manage_due_index

        with self._use_reporter():
            return manage_due_index(self.conf, check=check, drop=drop)

    def import_(self, file: str | Path) -> int:
        """Read cells that :meth:`export` wrote into the table, which is made if need be; return the number of rows."""
        from nutch2py.jobs.table_admin.table_maintenance import import_from_file

        with self._use_reporter():
            return import_from_file(self.conf, Path(file))

    def copy_to(self, store: str, *, filter_urls: bool = False, normalize: bool = False) -> int:
        """Copy every cell to the table of the same name in another store; return the number of rows.

        ``filter_urls``: only rows whose URL the filters accept; ``normalize``: to the row of its normal form.
        """
        from nutch2py.jobs.table_admin.table_maintenance import copy_to_store

        with self._use_reporter():
            return copy_to_store(self.conf, store, filter_urls=filter_urls, normalize=normalize)


@contextmanager
def _write_lines_file(lines: str | Path | Iterable[str]) -> Iterator[str]:
    """Give the path of lines; those of an iterable are written into a file for as long as the block takes."""
    if isinstance(lines, str | Path):
        yield str(lines)
        return
    with temp_dir("lines") as folder:
        path = folder / "lines.txt"
        lines = [*lines]
        for line in lines:
            if not isinstance(line, str):
                raise UsageError(f"a line is {line!r:.100}, which is no text: give lines as str")
        path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
        yield str(path)


def _check_number(name: str, value: object, allowed: NumberRange) -> None:
    """Raise UsageError unless an argument is a number in a range; True and False are none."""
    kinds = (int,) if allowed.integer else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool) or not allowed.contains(value):
        raise UsageError(f"{name} is {value!r}: give {allowed}")
