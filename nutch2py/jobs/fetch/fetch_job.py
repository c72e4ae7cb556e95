"""FetcherJob: fetch the pages of a batch from the web.

Map: assign the rows of the batch to partitions. Each host, domain or address (``partition.url.mode``) is in exactly
one. Reduce, one group per partition: a :class:`nutch2py.fetcher.fetcher.Fetcher` that is polite to each of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import ClassVar
from zlib import crc32

from nutch2py.browser.renderer_factory import open_renderer
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import HOST_SETTING_RANGES, LONG_MAX, NumberRange
from nutch2py.errors import UsageError
from nutch2py.fetcher.fetch_options import FetchOptions, compute_deadline
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.fetcher import Fetcher, FetchItem, RowSource
from nutch2py.fetcher.output.warc import check_warc_dir
from nutch2py.fetcher.protocols.http_settings import require_agent_name
from nutch2py.fetcher.queues.fetch_queues import HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import BY_HOST
from nutch2py.fetcher.stats.host_failures import HostFailures
from nutch2py.fetcher.stats.host_times import HOST_TIMES_RECORD, HostTimes
from nutch2py.fetcher.stats.response_histograms import SIZES_GROUP, TIMES_GROUP, to_job_counters
from nutch2py.jobs.batches.batch_lists import BatchListStore, make_batch_splits, mark_condition
from nutch2py.jobs.fetch.address_recheck import note_local_failures, record_address_filter
from nutch2py.jobs.fetch.local_failures_report import check_local_failures, describe_local_failures, totals_of
from nutch2py.jobs.fetch.page_sink import PageSink
from nutch2py.jobs.job_context import log_rejected_job, open_job
from nutch2py.jobs.locking.lock_scopes import FETCH, FETCH_REDIRECTS
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, reduce_task_count, run_job
from nutch2py.mapreduce.job_parameters import ALL, NON_NEGATIVE, POSITIVE, BatchParameters, JobParameters
from nutch2py.mapreduce.lock_check import LockHolder
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol, partition_key
from nutch2py.mapreduce.step_events import STEP_LISTENER
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import INJECTED_SITEMAP, Host, Mark, WebPage
from nutch2py.support.reporting import warn
from nutch2py.table import open_store
from nutch2py.url.filters.url_filters import SKIPPED_LINKS_GROUP
from nutch2py.url.keys import reverse_host, unreverse_url
from nutch2py.url.url_partitioner import URLPartitioner, choose_partition_seed

_ROWS_PER_READ = 100  # rows read at once for the queues


@dataclass(frozen=True, kw_only=True)
class FetchParameters(BatchParameters):
    """Parameters of a fetch.

    ``threads``: concurrent requests of a task. ``resume``: skip fetched pages. ``sitemap``: fetch sitemaps, and only
    these. ``detect_sitemaps``: record the sitemaps that robots.txt lists. ``deadline``: end of the fetch, seconds since
    1970, None for no limit. ``partitions``: fetch tasks. ``partition_mode``: what a partition keeps together ("": the
    property's value). ``partition_seed``: determines which of these share a partition. ``uses_batch_list``: rows come
    in the order of the batch list, which is kept. ``expected``: approximate number of pages of a task. ``warc``: a
    folder for WARC files, "" for none.
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
    uses_batch_list: bool = False
    expected: int = 0
    warc: str = ""
    ranges: ClassVar = {
        "threads": POSITIVE, "partitions": POSITIVE, "partition_seed": NON_NEGATIVE, "expected": NON_NEGATIVE,
    }  # fmt: skip

    def __post_init__(self) -> None:
        """Check the ranges of the fields."""
        super().__post_init__()
        if self.deadline is not None and not 0 <= self.deadline <= LONG_MAX:
            raise UsageError(f"deadline is {self.deadline!r}: give seconds since 1970, or None")

    @property
    def options(self) -> FetchOptions:
        """The options for the fetcher of a task."""
        return FetchOptions(
            threads=self.threads,
            deadline=float("inf") if self.deadline is None else self.deadline,
            expected_pages=self.expected,
            is_sitemap=self.sitemap,
            detect_sitemaps=self.detect_sitemaps,
            parse=self.parse,
            warc_dir=self.warc,
        )


class FetcherJob(TableJob[FetchParameters]):
    """Marked rows to partitions, partitions to the web, pages to the table. Outputs the failures of each partition."""

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True
    fields = frozenset({WebPage.markers})

    @classmethod
    def describe_local_outputs(cls, conf: Configuration, parameters: JobParameters) -> str:
        """Return a name for the WARC files, which a task writes to the disk of its machine."""
        return "WARC files" if isinstance(parameters, FetchParameters) and parameters.warc else ""

    def prepare(self) -> None:
        """Set the condition that selects the rows."""
        self.mark = mark_condition(Mark.GENERATE, self.parameters.batch_id)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield (partition, position and row key). Positions follow the list; without one a hash spreads the hosts."""
        parameters = self.parameters
        partitioner = URLPartitioner(self.conf, parameters.partition_mode, parameters.partition_seed)
        for number, (key, page) in enumerate(pages):
            if (page.markers.get(Mark.INJECT) == INJECTED_SITEMAP) != parameters.sitemap:
                continue
            if parameters.resume and page.markers.get(Mark.FETCH) is not None:
                self.count("FetcherStatus", "already_fetched")
                continue
            try:
                partition = partitioner.partition(unreverse_url(key), parameters.partitions)
            except ValueError:
                self.count("FetcherStatus", "malformed_key")
                continue
            except PluginError as error:
                self.plugin_failures.record(error)
                continue
            position = number if parameters.uses_batch_list else crc32(key.encode("utf-8", "surrogateescape"))
            yield partition_key(partition, parameters.partitions), f"{position:010d}{key}"

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[KeyValuePair]:
        """Fetch one partition after the other."""
        conf, options = self.conf, self.parameters.options
        fields = Fetcher.get_required_fields(conf, options)
        hosts = HostSettingsReader(conf) if conf.get_bool("fetcher.queue.use.host.settings") else None
        finished = JobResult()
        for _, values in groups:
            report = FetchReport()
            with PageSink(self.store, conf, self.check_lock, self._count_written_page, is_parsed=options.parse) as sink:
                fetcher = Fetcher(
                    conf,
                    get_host_settings=hosts,
                    log=self.channel.log_line,
                    options=options,
                    open_renderer=None if options.is_sitemap else open_renderer(conf),
                )
                lookup = partial(self.store.get, fields=fields)
                set_note = partial(self._set_note, finished, report)
                try:
                    fetcher.run(self._make_row_source(values, fields), sink, set_note, lookup, report)
                except BaseException:  # also of a signal
                    self._save_counters(finished, report)
                    raise
            if sink.rejected_rows:
                self.count("table", "rows_refused", sink.rejected_rows)
            counters = _to_counters(report)
            for group, names in counters.items():
                for name, amount in names.items():
                    self.count(group, name, amount)
            finished.add_counters(counters | _host_counters(report))
            yield from report.host_failures.to_records()
            yield from report.host_times.to_records()

    def _set_note(self, finished: JobResult, report: FetchReport, text: str) -> None:
        """Show the status line of a fetch, and save its counters and queues for the job log."""
        self.channel.set_note(text)
        self.channel.save_queues([asdict(each) for each in report.queues])
        self._save_counters(finished, report)

    def _save_counters(self, finished: JobResult, report: FetchReport) -> None:
        """Save the counters of a partition that is being fetched, and of those before it in this task."""
        counters = JobResult()
        for each in (finished.counters, _to_counters(report), _host_counters(report)):
            counters.add_counters(each)
        self.channel.save_counters(counters.counters)

    def _count_written_page(self, item: FetchItem) -> None:
        """Count a page that was written."""
        self.plugin_failures.pages += 1
        if item.plugin_error is not None:
            self.plugin_failures.record(item.plugin_error)
        self.channel.advance()

    def _make_row_source(self, values: Iterator[str], fields: frozenset[RecordField]) -> RowSource:
        keys = (value[10:] for value in values)
        return RowSource(((key, unreverse_url(key)) for key in keys), partial(self._read_items, fields))

    def _read_items(self, fields: frozenset[RecordField], keys: Sequence[str]) -> Iterator[FetchItem]:
        for first in range(0, len(keys), _ROWS_PER_READ):
            part = keys[first : first + _ROWS_PER_READ]
            for key, page in zip(part, self.store.get_many(part, fields), strict=True):
                if page is not None and self.is_readable(key, page):
                    yield FetchItem(key, unreverse_url(key), page)


def _to_counters(report: FetchReport) -> dict[str, dict[str, int]]:
    """Return the counters of a fetch by group, without those of hosts."""
    counters = {"FetcherStatus": {**report.counters, "bytes_downloaded": report.bytes}}
    for group, responses in ((TIMES_GROUP, report.response_times), (SIZES_GROUP, report.response_sizes)):
        counters[group] = to_job_counters(responses)
    counters[SKIPPED_LINKS_GROUP] = dict(report.filtered_links)
    return {group: names for group, names in counters.items() if names}


def _host_counters(report: FetchReport) -> dict[str, dict[str, int]]:
    """Return the counters of hosts by group."""
    return report.host_failures.to_counters() | report.host_times.to_counters()


class HostSettingsReader:
    """Reads settings of fetch queues from host metadata: ``q_mt`` (threads), ``q_cd`` and ``q_mcd`` (delays, ms)."""

    def __init__(self, conf: Configuration) -> None:
        self._store = open_store(conf, Host)
        self._exists = self._store.exists()

    def __call__(self, host: str) -> HostFetchSettings | None:
        """Return the settings of a host, None when the host table does not have it."""
        row = self._store.get(reverse_host(host), {Host.metadata}) if self._exists else None
        if row is None:
            return None
        numbers = {
            name: self._parse_number(host, name, row.metadata.get(name), allowed)
            for name, allowed in HOST_SETTING_RANGES.items()
        }
        return HostFetchSettings(numbers["q_mt"], numbers["q_cd"], numbers["q_mcd"])

    @staticmethod
    def _parse_number(host: str, name: str, value: bytes | None, allowed: NumberRange) -> int | None:
        if value is None:
            return None
        number = allowed.parse_integer(value)
        if number is None:
            warn(f"host table: {name} of {host} is {value!r}, which is not {allowed}: ignored")
        return number


def _find_shared_host(conf: Configuration, batch_id: str, queue_mode: str, other_holder: LockHolder) -> str:
    """Return why this fetch conflicts with another one that requests from the same host, domain or address, "" if not.

    Each fetch is polite only by itself: a server of both would get twice the allowed rate.
    """
    if other_holder.job != FETCH.name:
        return ""
    lists = BatchListStore(conf)
    if not (lists.is_complete(batch_id) and lists.is_complete(other_holder.batch)):
        return "without lists of both batches it is unknown which hosts they share"
    key = URLPartitioner(conf, queue_mode).key
    own_hosts = {key(unreverse_url(row)) for row in lists.iter_row_keys(batch_id)}
    shared = next(
        (host for row in lists.iter_row_keys(other_holder.batch) if (host := key(unreverse_url(row))) in own_hosts), ""
    )
    return shared and f"both would send requests to {shared}"


def _merge_hosts(result: JobResult) -> None:
    """Merge the hosts of the partitions into counters, of which Hadoop itself would not allow so many."""
    failures, times = HostFailures(), HostTimes()
    for name, record in result.output:
        if name == HOST_TIMES_RECORD:
            times.merge_record(record)
        else:
            failures.merge_record(name, record)
    result.output = []
    counters = failures.to_counters() | times.to_counters()
    result.add_counters(counters)
    if (listener := STEP_LISTENER.get()) is not None:
        listener.step_finished(counters)


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
    max_local_failure_share: float | None = None,
) -> JobResult:
    """Fetch a batch, or every generated row (``-all``); return the counters (group ``FetcherStatus``).

    ``warc``: a folder for WARC files, "" for none. ``max_local_failure_share``: None for
    ``fetcher.local.failure.share``.

    Raises:
        nutch2py.errors.LocalFailuresError: More than this share of the pages failed for a reason of this machine.
            Everything fetched is stored.
    """
    warc = warc or conf.get_trimmed("fetcher.warc.dir")
    warc = str(conf.absolute(warc)) if warc else ""
    with log_rejected_job(conf, FETCH, batch_id):
        require_agent_name(conf)
        if warc:
            check_warc_dir(warc)
    log = JobLogger("FetcherJob")
    log.log("fetching all" if batch_id == ALL else f"batchId: {batch_id}")
    queue_mode = conf.get_trimmed("fetcher.queue.mode", BY_HOST)
    find_conflict = partial(_find_shared_host, conf, batch_id, queue_mode)
    scope = FETCH_REDIRECTS if conf.get_int("http.redirect.max", 0) > 0 else FETCH
    with open_job(conf, scope, batch_id=batch_id, mark=Mark.GENERATE, find_conflict=find_conflict) as tables:
        store, lists = tables.store, tables.batch_lists
        deadline, tasks = compute_deadline(conf), num_tasks or reduce_task_count(conf)
        splits, expected = make_batch_splits(
            conf, store, FetcherJob.fields, Mark.GENERATE, batch_id, map_task_count(conf)
        )
        parameters = FetchParameters(
            batch_id=batch_id,
            threads=max(1, threads or conf.get_int("fetcher.threads.fetch", 10)),
            resume=resume,
            sitemap=sitemap,
            detect_sitemaps=detect_sitemaps,
            parse=conf.get_bool("fetcher.parse"),
            deadline=None if deadline == float("inf") else deadline,
            partitions=tasks,
            # else two tasks would send requests to the servers of one domain or address at the same time
            partition_mode="" if queue_mode == BY_HOST else queue_mode,
            # the seed of the list, which keeps its order; for -all, other hosts share a partition each time
            partition_seed=choose_partition_seed(conf, str(time.time_ns()) if batch_id == ALL else batch_id),
            uses_batch_list=batch_id != ALL and lists.is_complete(batch_id),
            expected=(expected or 0) // tasks,
            warc=warc,
        )
        log.log(f"threads: {parameters.threads}")
        log.log(f"parsing: {str(parameters.parse).lower()}")
        log.log(f"resuming: {str(resume).lower()}")
        log.log_raw(f"FetcherJob : timelimit set for : {-1 if parameters.deadline is None else int(deadline * 1000)}")
        with record_address_filter(conf, tables):
            result = run_job(
                FetcherJob, conf, splits, parameters, title="FetcherJob", expected_rows=expected and 2 * expected,
                reducers=tasks,
            )  # fmt: skip
        _merge_hosts(result)
        log.log(result.summary("FetcherStatus") or "nothing to fetch")
        totals = totals_of(result)
        if totals.local_failure_count:
            note_local_failures(tables)
        if message := describe_local_failures(conf, totals):
            warn(message)
        check_local_failures(conf, totals, max_local_failure_share)
        log.log_finished()
        return result
