"""Crawl: the Python interface of a crawl. Every job is a method that takes its parameters and returns its result.

    with Crawl("embedded:crawldata", {"http.agent.name": "my-crawler"}) as crawl:
        crawl.inject(["https://www.example.org/"])
        batch = crawl.generate(top_n=1000)

Nothing is printed; log lines, warnings and progress go to callbacks. Failures raise the errors of
:mod:`nutch2py.errors`. The commands use this class, so a program can do everything that a command does. docs/python.md
describes the stable part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nutch2py.conf.property_ranges import COUNT, DAYS, FRACTION, check_number
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import UsageError
from nutch2py.support.temp_dirs import temp_dir

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.jobs.export.export_job import ExportResult
    from nutch2py.jobs.generate.generate_job import GenerateResult
    from nutch2py.jobs.page_import.import_job import ImportResult
    from nutch2py.jobs.pagerank.pagerank_job import PageRankResult
    from nutch2py.mapreduce.driver import JobResult


class Crawl(CrawlReader):
    """One crawl: its tables, its jobs, its index. A context manager that closes its connections.

    ``where`` is a Configuration, or a value of ``storage.data.store`` (``embedded:FOLDER``, ``hbase://HOST:PORT``) that
    overrides the default configuration and ``NUTCH_CONF_DIR``; None for these alone. ``properties`` override both.
    ``crawl_id`` is part of the table names. Nothing is opened or created before a method needs it.

    ``on_line``, ``on_warning`` and ``on_progress`` get the output of jobs. They are called from the calling thread and
    from threads of a job, but never concurrently. An exception in a callback is raised by the method that was called.
    ``on_progress`` is called twice a second, and at the end of each MapReduce job.

    A crawl is not thread-safe. Several crawls can be used concurrently, each in its own thread.
    """

    # the jobs of a round

    def inject(
        self, seeds: str | Path | Iterable[str], *, filter_urls: bool = True, normalize: bool = True
    ) -> JobResult:
        """Inject seeds, and create the table if needed; counters are in the group ``injector``.

        Args:
            seeds: A file, a folder, ``hdfs://…``, or an iterable of lines.
            filter_urls: Whether to apply URL filters.
            normalize: Whether to apply URL normalizers.

        Raises:
            nutch2py.errors.InputError: There is no seed file.
        """
        from nutch2py.jobs.inject.inject_job import inject

        with self._use_reporter(), _write_lines_file(seeds) as path:
            return inject(self.conf, path, filter_urls=filter_urls, normalize=normalize)

    def generate(
        self,
        *,
        top_n: int | None = None,
        add_days: float = 0,
        filter_urls: bool = True,
        normalize: bool = True,
        sitemap: bool = False,
        batch_id: str = "",
    ) -> GenerateResult:
        """Make a batch of due URLs; its number of URLs is 0 when nothing is due.

        Generating an open batch again changes nothing. Counters are in the group ``generator``.

        Args:
            top_n: Maximum number of URLs, None for unlimited; 0 selects none, as in Nutch.
            add_days: Days to add to the current time when it is decided which rows are due.
            filter_urls: Whether to apply URL filters again.
            normalize: Whether to apply URL normalizers again.
            sitemap: Select sitemaps, and only these.
            batch_id: The id of the batch, "" for a new one.
        """
        from nutch2py.jobs.generate.generate_job import generate

        if top_n is not None:
            check_number("top_n", top_n, COUNT)
        check_number("add_days", add_days, DAYS)
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

        URLs that the table does not have are injected. ``filter_urls`` and ``normalize``: whether to apply filters and
        normalizers. ``batch_id`` and the result are those of :meth:`generate`.
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
        max_local_failure_share: float | None = None,
    ) -> JobResult:
        """Fetch a batch (:data:`nutch2py.ALL`: every batch); counters are in the group ``FetcherStatus``.

        Args:
            batch_id: The batch.
            threads: Concurrent requests of a task, 0 for ``fetcher.threads.fetch``.
            resume: Skip what an interrupted fetch has done.
            num_tasks: Number of fetch tasks, 0 for the number of reduce tasks.
            sitemap: Fetch sitemaps, and only these.
            detect_sitemaps: Record the sitemaps that robots.txt lists.
            warc: A folder for WARC files.
            max_local_failure_share: Share of the pages, 0 to 1, that may fail for a reason of this machine; None for
                ``fetcher.local.failure.share``.

        Raises:
            nutch2py.errors.LocalFailuresError: More pages have failed so. Everything fetched is stored.
            nutch2py.errors.UnknownBatchError: The batch is unknown, here and in the jobs that follow.
        """
        from nutch2py.jobs.fetch.fetch_job import fetch

        check_number("threads", threads, COUNT)
        check_number("num_tasks", num_tasks, COUNT)
        if max_local_failure_share is not None:
            check_number("max_local_failure_share", max_local_failure_share, FRACTION)
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
                max_local_failure_share=max_local_failure_share,
            )

    def parse(self, batch_id: str, *, resume: bool = False, force: bool = False, sitemap: bool = False) -> JobResult:
        """Parse a batch (:data:`nutch2py.ALL`: every batch); counters are in the group ``ParserStatus``.

        ``resume``: skip what an interrupted parse has done; with ``force`` parse it again. ``sitemap``: parse sitemaps,
        and only these.
        """
        from nutch2py.jobs.parse_job import parse

        with self._use_reporter():
            return parse(self.conf, batch_id, resume=resume, force=force, sitemap=sitemap)

    def updatedb(self, batch_id: str) -> JobResult:
        """Update the table from a batch (:data:`nutch2py.ALL`: every batch); group ``updatedb``."""
        from nutch2py.jobs.updatedb.updatedb_job import updatedb

        with self._use_reporter():
            return updatedb(self.conf, batch_id)

    def index(self, batch_id: str, *, force: bool = False) -> JobResult:
        """Index a batch; counters are in the group ``IndexerStatus``.

        :data:`nutch2py.ALL`: every row that is updated and not indexed; :data:`nutch2py.REINDEX`: every parsed row;
        :data:`nutch2py.SCORES`: only the scores that :meth:`pagerank` has changed, without the documents. ``force``:
        delete documents without the limit of ``indexer.delete.max.share``, as after a
        :class:`~nutch2py.errors.DeletionsRefusedError` that is right.
        """
        from nutch2py.jobs.index.index_job import index

        with self._use_reporter():
            return index(self._deleting_conf(force), batch_id)

    # the whole table

    def pagerank(
        self, *, model: Literal["site", "classic", "linkrank"] | None = None, iterations: int | None = None
    ) -> PageRankResult:
        """Compute the PageRank of every page.

        None means the value of ``pagerank.model``, and of ``pagerank.iterations`` (for ``linkrank``:
        ``link.analyze.num.iterations``).
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
        """Mark duplicates of a better page, with ``near`` also near-duplicates; group ``DeduplicationJob``.

        ``group``: compare the pages of each host, of each domain, or all (none). ``order``: the criteria by which one
        page is kept. ``threshold``: bits in which SimHashes may differ. None means the value of the property
        ``deduplication.*``.
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

    def clean(self, *, commit: bool = True, force: bool = False) -> JobResult:
        """Delete gone, redirected, duplicate and non-indexable pages from the index; group ``CleaningJob``.

        Without ``commit`` the deletes are sent, but not committed. ``force``: as for :meth:`index`.
        """
        from nutch2py.jobs.index.clean_job import clean

        with self._use_reporter():
            return clean(self._deleting_conf(force), commit=commit)

    def _deleting_conf(self, force: bool) -> Configuration:
        from nutch2py.jobs.index.deletion_limit import remove_limit

        conf = self.conf
        if force:
            conf = conf.copy()
            remove_limit(conf)
        return conf

    def solrdedup(self) -> int:
        """Delete duplicates from the Solr of ``solr.server.url``; return the number of deleted documents."""
        from nutch2py.jobs.index.solrdedup import solrdedup

        with self._use_reporter():
            return solrdedup(self.conf)

    def hostinject(self, hosts: str | Path | Iterable[str]) -> JobResult:
        """Add host settings to the host table from a file, a folder, or lines; group ``hostinject``."""
        from nutch2py.jobs.hostdb.hostdb_jobs import hostinject

        with self._use_reporter(), _write_lines_file(hosts) as path:
            return hostinject(self.conf, path)

    def updatehostdb(self, *, links: bool = False) -> JobResult:
        """Count the pages of every host, with ``links`` the links between hosts, too; group ``updatehostdb``."""
        from nutch2py.jobs.hostdb.hostdb_jobs import updatehostdb

        with self._use_reporter():
            return updatehostdb(self.conf, links)

    def export_pages(
        self,
        folder: str | Path,
        export_format: str = "jsonl",
        *,
        fields: Sequence[str] = (),
        where: Sequence[str] = (),
        host: str = "",
        changed_since: str | int | Path = 0,
        all_rows: bool = False,
        chunk_tokens: int = 0,
    ) -> ExportResult:
        """Write fetched pages as files for other programs.

        Args:
            folder: Folder for the files; it must be new or empty.
            export_format: jsonl, csv, parquet (extra ``export``), markdown (extra ``main-text``), warc, cdxj (WARC with
                an index) or wacz.
            fields: Names of columns, ``default`` or ``all``; empty for those of the format.
            where: Conditions such as ``lang=de`` or ``score>0.5``, all of which a page must meet.
            host: Only pages of this host.
            changed_since: Only pages fetched at or after this time (ISO 8601, or ms since 1970), or since the export in
                this folder.
            all_rows: Write rows of every status.
            chunk_tokens: With markdown, write chunks by headings of about this many tokens; 0: a file per page.

        Raises:
            UsageError: A format, field, condition or time is invalid.
            InputError: The folder is in use or cannot be created.
        """
        from nutch2py.jobs.export.export_job import export_pages, make_parameters

        check_number("chunk_tokens", chunk_tokens, COUNT)
        with self._use_reporter():
            parameters = make_parameters(export_format, fields, where, all_rows=all_rows, changed_since=changed_since)
            return export_pages(
                self.conf, Path(folder), export_format, parameters, host=host, chunk_tokens=chunk_tokens
            )

    def import_pages(
        self,
        paths: str | Path | Iterable[str | Path],
        input_format: str = "auto",
        *,
        batch_id: str = "",
        filter_urls: bool = True,
        normalize: bool = True,
    ) -> ImportResult:
        """Import pages of WARC and WACZ files as a fetched batch, and lists of URLs as seeds.

        Args:
            paths: Files and folders.
            input_format: auto (by content and name), warc, wacz, urls, csv, cdxj or sitemap.
            batch_id: Batch of the pages, "" for a new one.
            filter_urls: Whether to apply URL filters.
            normalize: Whether to apply URL normalizers.

        Raises:
            InputError: A file does not exist or is not readable.
        """
        from nutch2py.jobs.page_import.import_job import import_pages

        names = [paths] if isinstance(paths, (str, Path)) else paths
        with self._use_reporter():
            return import_pages(
                self.conf, [Path(name) for name in names], input_format=input_format, batch_id=batch_id,
                filter_urls=filter_urls, normalize=normalize,
            )  # fmt: skip

    def export(self, file: str | Path, *, salvage: bool = False) -> int:
        """Write every cell of the table to a file of JSON lines (gzip: ``.gz``); return the number of rows.

        ``salvage``: export the readable part of a damaged table.
        """
        from nutch2py.jobs.table_admin.table_maintenance import export_to_file

        with self._use_reporter():
            return export_to_file(self.conf, Path(file), salvage)

    def check(self) -> int:
        """Check the tables for damage and report it; return the number of problems."""
        from nutch2py.jobs.table_admin.table_maintenance import check_tables

        with self._use_reporter():
            return check_tables(self.conf)

    def due_index(self, *, check: bool = False, drop: bool = False) -> int:
        """Rebuild the due index and the table statistics; jobs that write wait meanwhile.

        ``check``: compare both with the rows instead; ``drop``: delete both. Return the number of problems found.
        """
        from nutch2py.jobs.table_admin.table_maintenance import manage_due_index

        with self._use_reporter():
            return manage_due_index(self.conf, check=check, drop=drop)

    def import_(self, file: str | Path) -> int:
        """Import cells that :meth:`export` wrote, and create the table if needed; return the number of rows."""
        from nutch2py.jobs.table_admin.table_maintenance import import_from_file

        with self._use_reporter():
            return import_from_file(self.conf, Path(file))

    def copy_to(self, store: str, *, filter_urls: bool = False, normalize: bool = False) -> int:
        """Copy every cell to the table of the same name in another store; return the number of rows.

        ``filter_urls``: only rows with URLs that the filters accept; ``normalize``: to the row of the normalized URL.
        """
        from nutch2py.jobs.table_admin.table_maintenance import copy_to_store

        with self._use_reporter():
            return copy_to_store(self.conf, store, filter_urls=filter_urls, normalize=normalize)


@contextmanager
def _write_lines_file(lines: str | Path | Iterable[str]) -> Iterator[str]:
    """Yield the path of a seed source; lines of an iterable are in a temporary file within the block."""
    if isinstance(lines, str | Path):
        yield str(lines)
        return
    with temp_dir("lines") as folder:
        path = folder / "lines.txt"
        lines = [*lines]
        for line in lines:
            if not isinstance(line, str):
                raise UsageError(f"a seed line is {line!r:.100}, not a str: decode it first")
        path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
        yield str(path)
