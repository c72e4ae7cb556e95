"""FetcherJob: the pages of a batch from the web.

Map: rows of the batch to partitions; a host, domain or address (``partition.url.mode``) is in exactly one. Reduce, one
group a partition: a :class:`nutch2py.fetcher.fetcher.Fetcher` that is polite to each of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Self
from zlib import crc32

from nutch2py.cells import decode_text
from nutch2py.conf import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.settings import check_agent
from nutch2py.jobs.batchlist import ALL, BatchLists, mark_condition, rows_of_batch
from nutch2py.jobs.joblog import JobLog
from nutch2py.jobs.journal import recover
from nutch2py.mapreduce.driver import JobResult, map_tasks, reduce_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.protocol import SortedTextProtocol
from nutch2py.table import WriteBatch, open_store
from nutch2py.table.store import now_ms
from nutch2py.url.keys import unreverse_url
from nutch2py.url.partition import URLPartitioner
from nutch2py.webpage import INJECTED_SITEMAP, CrawlStatus, Mark, WebPage

_ROWS = 100  # rows read at once for the queues
_FLUSH_SECONDS = 5.0  # what a killed fetcher loses at most
_REDIRECTS = (CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)


class FetcherJob(TableJob):
    """Marked rows to partitions, partitions to the web, pages to the table."""

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True
    fields = frozenset({WebPage.markers})

    def prepare(self) -> None:
        """Read the job's parameters."""
        conf = self.conf
        self.batch_id = conf.get("fetcher.batch.id", "")
        self.mark = mark_condition(Mark.GENERATE, self.batch_id)
        self.resume = conf.get_bool("fetcher.job.resume")
        self.sitemap = conf.get_bool("fetcher.sitemap")
        self.partitions = conf.get_int("fetcher.partitions", 1)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield (partition, place and row key); places follow the list, or spread hosts by a hash without one."""
        partitioner = URLPartitioner(self.conf)
        listed = self.conf.get_bool("fetcher.listed")
        for number, (key, page) in enumerate(pages):
            if (page.markers.get(Mark.INJECT) == INJECTED_SITEMAP) != self.sitemap:
                continue
            if self.resume and page.markers.get(Mark.FETCH) is not None:
                self.count("FetcherStatus", "already_fetched")
                continue
            try:
                partition = partitioner.partition(unreverse_url(key), self.partitions)
            except ValueError:
                self.count("FetcherStatus", "malformed_key")
                continue
            place = number if listed else crc32(key.encode("utf-8", "surrogateescape"))
            yield f"{partition:05d}", f"{place:010d}{key}"

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[Pair]:
        """Fetch partition after partition."""
        conf = self.conf
        fields = Fetcher.fields(conf)
        for _, values in groups:
            with _PageSink(self) as sink:
                fetcher = Fetcher(conf, log=self.channel.line)
                lookup = partial(self.store.get, fields=fields)
                report = fetcher.run(self._items(values, fields), sink, self.channel.line, lookup)
            for name, amount in report.counters.items():
                self.count("FetcherStatus", name, amount)
        yield from ()

    def _items(self, values: Iterator[str], fields: frozenset[Any]) -> Iterator[FetchItem]:
        keys: list[str] = []
        for value in values:
            keys.append(value[10:])
            if len(keys) >= _ROWS:
                yield from self._read(keys, fields)
                keys = []
        yield from self._read(keys, fields)

    def _read(self, keys: list[str], fields: frozenset[Any]) -> Iterator[FetchItem]:
        for key, page in zip(keys, self.store.get_many(keys, fields), strict=True):
            if page is not None:
                yield FetchItem(key, unreverse_url(key), page)


class _PageSink:
    """Writes pages that were fetched, a few seconds' worth at once."""

    def __init__(self, job: FetcherJob) -> None:
        self._job, self._lists = job, BatchLists(job.conf)
        self._parsing = job.conf.get_bool("fetcher.parse")
        self._batch: WriteBatch = job.store.batch()
        self._side: WriteBatch = self._lists.store.batch()
        self._flushed = time.monotonic()

    def __call__(self, item: FetchItem) -> None:
        page = item.page
        gone = self._dropped(item)
        if gone:
            self._lists.put_dropped(self._side, page.markers.get(Mark.FETCH) or "", item.key, gone)
        self._batch.put(item.key, page)
        self._job.channel.advance()
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def _dropped(self, item: FetchItem) -> set[str]:
        """Return the links that the row loses: to a redirect, which replaces them unread, or to a parse."""
        page = item.page
        if self._parsing:
            before = {decode_text(url) for url in page.cells.get(WebPage.outlinks.family, {})}
        elif page.status in _REDIRECTS:
            row = self._job.store.get(item.key, {WebPage.outlinks})
            before = set(row.outlinks) if row is not None else set()
        else:
            return set()
        return before - set(page.outlinks) if before else before

    def _flush(self) -> None:
        self._side.flush()  # first: the pages' own links are gone once they are written
        self._batch.flush()
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()  # what was fetched is kept, also when the job fails


def fetch(
    conf: Configuration,
    batch_id: str,
    *,
    threads: int = 0,
    resume: bool = False,
    num_tasks: int = 0,
    sitemap: bool = False,
    detect_sitemaps: bool = False,
) -> JobResult:
    """Fetch a batch, or every generated row (``-all``); return the counters (group ``FetcherStatus``)."""
    check_agent(conf)
    log = JobLog("FetcherJob")
    log.line("fetching all" if batch_id == ALL else f"batchId: {batch_id}")
    conf = conf.copy()
    recover(conf)
    if threads:
        conf.set("fetcher.threads.fetch", threads)
    log.line(f"threads: {conf.get_int('fetcher.threads.fetch', 10)}")
    log.line(f"parsing: {str(conf.get_bool('fetcher.parse')).lower()}")
    log.line(f"resuming: {str(resume).lower()}")
    minutes = conf.get_int("fetcher.timelimit.mins", -1)
    conf.set("fetcher.timelimit", now_ms() + minutes * 60000 if minutes > 0 else -1)
    log.raw(f"FetcherJob : timelimit set for : {conf.get('fetcher.timelimit')}")
    tasks = num_tasks or reduce_tasks(conf)
    conf.set("fetcher.batch.id", batch_id)
    conf.set("fetcher.job.resume", resume)
    conf.set("fetcher.sitemap", sitemap)
    conf.set("fetcher.stmdetect", detect_sitemaps)
    conf.set("fetcher.partitions", tasks)
    store, lists = open_store(conf, WebPage), BatchLists(conf)
    store.create()
    lists.store.create()
    conf.set("fetcher.listed", batch_id != ALL and lists.complete(batch_id))
    splits, expected = rows_of_batch(conf, store, FetcherJob.fields, Mark.GENERATE, batch_id, map_tasks(conf))
    result = run_job(FetcherJob, conf, splits, title="FetcherJob", expected=expected and 2 * expected, reducers=tasks)
    counts = ", ".join(f"{amount} {name}" for name, amount in sorted(result.counters.get("FetcherStatus", {}).items()))
    log.line(counts or "nothing to fetch")
    log.finished()
    return result
