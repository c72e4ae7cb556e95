"""FetcherJob: the pages of a batch from the web.

Map: rows of the batch to partitions; a host, domain or address (``partition.url.mode``) is in exactly one. Reduce, one
group a partition: a :class:`nutch2py.fetcher.fetcher.Fetcher` that is polite to each of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from zlib import crc32

from nutch2py.browser.opening import open_renderer
from nutch2py.conf import Configuration
from nutch2py.errors import UsageError
from nutch2py.fetcher.distribution import SIZES_GROUP, TIMES_GROUP
from nutch2py.fetcher.fetch_options import FetchOptions, deadline
from nutch2py.fetcher.fetcher import Fetcher, FetchItem, Rows
from nutch2py.fetcher.http_settings import check_agent
from nutch2py.fetcher.queue_keys import BY_HOST
from nutch2py.fetcher.queues import HostSettings
from nutch2py.fetcher.troubles import Troubles
from nutch2py.fetcher.warc import check_folder
from nutch2py.jobs.allowed import noting_gate
from nutch2py.jobs.batchlist import BatchLists, mark_condition, rows_of_batch
from nutch2py.jobs.beginning import begin, refusals
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.page_sink import PageSink
from nutch2py.jobs.works import FETCH, FETCH_REDIRECTS
from nutch2py.mapreduce.driver import JobResult, map_tasks, reduce_tasks, run_job
from nutch2py.mapreduce.held import Holder
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import ALL, NUMBER, SEVERAL, BatchParameters, JobParameters
from nutch2py.mapreduce.protocol import SortedTextProtocol, partition_key
from nutch2py.mapreduce.steps import ACCOUNT
from nutch2py.plugin_guard import PluginError
from nutch2py.ranges import LONG
from nutch2py.reporting import warn
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_host, unreverse_url
from nutch2py.url.partition import URLPartitioner, seed_of
from nutch2py.url.url_filters import LINKS_GROUP
from nutch2py.webpage import INJECTED_SITEMAP, CrawlStatus, Host, Mark, WebPage

_ROWS = 100  # rows read at once for the queues
_FLUSH_SECONDS = 5.0  # what a killed fetcher loses at most
_REDIRECTS = (CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)


@dataclass(frozen=True, kw_only=True)
class FetchParameters(BatchParameters):
    """What a fetch is asked for.

    ``threads``: requests at a time in a task. ``resume``: leave out what is fetched. ``sitemap``: sitemaps, and only
    these; ``detect_sitemaps``: note those that robots.txt names. ``deadline``: when it ends, seconds since 1970, None
    for never. ``partitions``: fetch tasks, ``partition_mode``: what they hold together ("": as the property says),
    ``partition_seed``: which of these meet. ``listed``: rows come through the batch's list, whose order is to be kept.
    ``expected``: pages of a task, about. ``warc``: a folder for WARC files, "" for none.
    """

    threads: int = 10
    resume: bool = False
    sitemap: bool = False
    detect_sitemaps: bool = False
    parse: bool = False
    deadline: float | None = None
    partitions: int = 1
    partition_mode: str = ""
    partition_seed: int = 0
    listed: bool = False
    expected: int = 0
    warc: str = ""
    ranges: ClassVar = {
        "threads": SEVERAL, "partitions": SEVERAL, "partition_seed": NUMBER, "expected": NUMBER,
    }  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse what is out of its range."""
        super().__post_init__()
        if self.deadline is not None and not 0 <= self.deadline <= LONG:
            raise UsageError(f"deadline is {self.deadline!r}: give seconds since 1970, or None")

    @property
    def options(self) -> FetchOptions:
        """What the fetcher of a task is asked for."""
        return FetchOptions(
            threads=self.threads,
            deadline=float("inf") if self.deadline is None else self.deadline,
            expected=self.expected,
            sitemap=self.sitemap,
            detect_sitemaps=self.detect_sitemaps,
            parse=self.parse,
            warc=self.warc,
        )


class FetcherJob(TableJob[FetchParameters]):
    """Marked rows to partitions, partitions to the web, pages to the table; puts out the troubles of each partition."""

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True
    fields = frozenset({WebPage.markers})

    @classmethod
    def local_outputs(cls, conf: Configuration, parameters: JobParameters) -> str:
        """Name the WARC files, which a task writes to the disk of its machine."""
        return "WARC files" if isinstance(parameters, FetchParameters) and parameters.warc else ""

    def prepare(self) -> None:
        """Name the rows."""
        self.mark = mark_condition(Mark.GENERATE, self.parameters.batch_id)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield (partition, place and row key); places follow the list, or spread hosts by a hash without one."""
        asked = self.parameters
        partitioner = URLPartitioner(self.conf, asked.partition_mode, asked.partition_seed)
        for number, (key, page) in enumerate(pages):
            if (page.markers.get(Mark.INJECT) == INJECTED_SITEMAP) != asked.sitemap:
                continue
            if asked.resume and page.markers.get(Mark.FETCH) is not None:
                self.count("FetcherStatus", "already_fetched")
                continue
            try:
                partition = partitioner.partition(unreverse_url(key), asked.partitions)
            except ValueError:
                self.count("FetcherStatus", "malformed_key")
                continue
            except PluginError as error:
                self.failures.note(error)
                continue
            place = number if asked.listed else crc32(key.encode("utf-8", "surrogateescape"))
            yield partition_key(partition, asked.partitions), f"{place:010d}{key}"

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[Pair]:
        """Fetch partition after partition."""
        conf, options = self.conf, self.parameters.options
        fields = Fetcher.fields(conf, options)
        hosts = HostTable(conf) if conf.get_bool("fetcher.queue.use.host.settings") else None
        for _, values in groups:
            with PageSink(self.store, conf, self.check_held, self._done, parsing=options.parse) as sink:
                fetcher = Fetcher(
                    conf,
                    host_settings=hosts,
                    log=self.channel.line,
                    options=options,
                    renderer=None if options.sitemap else open_renderer(conf),
                )
                lookup = partial(self.store.get, fields=fields)
                report = fetcher.run(self._named(values, fields), sink, self.channel.note, lookup)
            if sink.refused:
                self.count("table", "rows_refused", sink.refused)
            for name, amount in report.counters.items():
                self.count("FetcherStatus", name, amount)
            self.count("FetcherStatus", "bytes_downloaded", report.bytes)
            for group, spread in ((TIMES_GROUP, report.times), (SIZES_GROUP, report.sizes)):
                for name, amount in spread.counts.items():
                    self.count(group, name, amount)
            for name, amount in report.links.items():
                self.count(LINKS_GROUP, name, amount)
            yield from report.troubles.told()

    def _done(self, item: FetchItem) -> None:
        """Count a page that is written."""
        self.failures.pages += 1
        if item.plugin_error is not None:
            self.failures.note(item.plugin_error)
        self.channel.advance()

    def _named(self, values: Iterator[str], fields: frozenset[Any]) -> Rows:
        keys = (value[10:] for value in values)
        return Rows(((key, unreverse_url(key)) for key in keys), partial(self._read, fields))

    def _read(self, fields: frozenset[Any], keys: Sequence[str]) -> Iterator[FetchItem]:
        for first in range(0, len(keys), _ROWS):
            part = keys[first : first + _ROWS]
            for key, page in zip(part, self.store.get_many(part, fields), strict=True):
                if page is not None and self.readable(key, page):
                    yield FetchItem(key, unreverse_url(key), page)


class HostTable:
    """Settings of queues, in a host's metadata: ``q_mt`` (threads), ``q_cd`` and ``q_mcd`` (delays in ms)."""

    def __init__(self, conf: Configuration) -> None:
        self._store = open_store(conf, Host)
        self._there = self._store.exists()

    def __call__(self, host: str) -> HostSettings | None:
        """Return the settings of a host, None when the table does not know it."""
        found = self._store.get(reverse_host(host), {Host.metadata}) if self._there else None
        if found is None:
            return None
        names = ("q_mt", "q_cd", "q_mcd")
        return HostSettings(*(self._number(host, name, found.metadata.get(name)) for name in names))

    @staticmethod
    def _number(host: str, name: str, value: bytes | None) -> int | None:
        if value is None:
            return None
        try:
            return max(0, int(value))
        except ValueError:
            warn(f"host table: {name} of {host} is {value!r}, which is not a whole number: it is left out")
            return None


def _shared_host(conf: Configuration, batch_id: str, queues: str, other: Holder) -> str:
    """Say which host (domain, address) another fetch would ask, too; "" for none.

    Each fetch is polite by itself: a server that both ask is asked at twice its rate.
    """
    if other.job != FETCH.name:
        return ""
    lists = BatchLists(conf)
    if not (lists.complete(batch_id) and lists.complete(other.batch)):
        return "what hosts both ask is not known without lists of their batches"
    key = URLPartitioner(conf, queues).key
    ours = {key(unreverse_url(row)) for row in lists.row_keys(batch_id)}
    shared = next((host for row in lists.row_keys(other.batch) if (host := key(unreverse_url(row))) in ours), "")
    return shared and f"both would ask {shared}"


def _take_troubles(result: JobResult) -> None:
    """Put together what the partitions had trouble with, as counters; their number would be too much for Hadoop's."""
    troubles = Troubles()
    for reason, counted in result.output:
        troubles.take(reason, counted)
    result.output = []
    found = troubles.counters()
    result.add_counters(found)
    if (account := ACCOUNT.get()) is not None:
        account.step_ends(found)


def fetch(
    conf: Configuration,
    batch_id: str,
    *,
    threads: int = 0,
    resume: bool = False,
    num_tasks: int = 0,
    sitemap: bool = False,
    detect_sitemaps: bool = False,
    warc: str = "",
) -> JobResult:
    """Fetch a batch, or every generated row (``-all``); return the counters (group ``FetcherStatus``).

    ``warc``: a folder for WARC files, "" for none.
    """
    warc = warc or conf.get_trimmed("fetcher.warc.dir")
    warc = str(conf.absolute(warc)) if warc else ""
    with refusals(conf, FETCH, batch_id):
        check_agent(conf)
        if warc:
            check_folder(warc)
    log = JobLines("FetcherJob")
    log.line("fetching all" if batch_id == ALL else f"batchId: {batch_id}")
    queues = conf.get_trimmed("fetcher.queue.mode", BY_HOST)
    objection = partial(_shared_host, conf, batch_id, queues)
    work = FETCH_REDIRECTS if conf.get_int("http.redirect.max", 0) > 0 else FETCH
    with begin(conf, work, batch_id=batch_id, mark=Mark.GENERATE, objection=objection) as tables:
        store, lists = tables.store, tables.lists
        ends, tasks = deadline(conf), num_tasks or reduce_tasks(conf)
        splits, expected = rows_of_batch(conf, store, FetcherJob.fields, Mark.GENERATE, batch_id, map_tasks(conf))
        parameters = FetchParameters(
            batch_id=batch_id,
            threads=max(1, threads or conf.get_int("fetcher.threads.fetch", 10)),
            resume=resume,
            sitemap=sitemap,
            detect_sitemaps=detect_sitemaps,
            parse=conf.get_bool("fetcher.parse"),
            deadline=None if ends == float("inf") else ends,
            partitions=tasks,
            # else two tasks would ask the servers of a domain, or of an address, at the same time
            partition_mode="" if queues == BY_HOST else queues,
            # that of the list, so that its order stays; rows of every batch are put together anew each time
            partition_seed=seed_of(conf, str(time.time_ns()) if batch_id == ALL else batch_id),
            listed=batch_id != ALL and lists.complete(batch_id),
            expected=(expected or 0) // tasks,
            warc=warc,
        )
        log.line(f"threads: {parameters.threads}")
        log.line(f"parsing: {str(parameters.parse).lower()}")
        log.line(f"resuming: {str(resume).lower()}")
        log.raw(f"FetcherJob : timelimit set for : {-1 if parameters.deadline is None else int(ends * 1000)}")
        with noting_gate(conf, tables):
            result = run_job(
                FetcherJob, conf, splits, parameters, title="FetcherJob", expected=expected and 2 * expected,
                reducers=tasks,
            )  # fmt: skip
        _take_troubles(result)
        log.line(result.summary("FetcherStatus") or "nothing to fetch")
        log.finished()
        return result
