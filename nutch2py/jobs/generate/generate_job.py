"""GeneratorJob: select the URLs to fetch next, and make a batch of them.

Map: select the due rows with the highest scores, at most ``generate.max.count`` per host or domain. A map task emits at
most topN entries, and the union of these always contains the overall selection. Reduce: all entries of a host or domain
are in one bucket, where the cap is exact. The best entries of each bucket are stored in blocks
(:mod:`nutch2py.jobs.generate.candidate_blocks`). The driver finds the last of the best topN entries of all buckets, and
:mod:`nutch2py.jobs.generate.batch_writer_job` makes a batch of them.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from zlib import crc32

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import ANY_INTEGER
from nutch2py.errors import ConfigurationError, UsageError
from nutch2py.joblog.job_recorder import annotate_job
from nutch2py.jobs.batches.batch_lists import (
    UNKNOWN_COUNT,
    BatchListStore,
    BatchRecord,
    BatchState,
    candidate_prefix,
)
from nutch2py.jobs.batches.bulk_delete import bulk_delete_batch
from nutch2py.jobs.generate.batch_writer_job import BatchWriterJob, BatchWriterParameters
from nutch2py.jobs.generate.candidate_blocks import (
    CandidateBlock,
    CandidateBlockWriter,
    find_last_entry,
    locate_blocks,
    make_block_splits,
    read_block_entries,
)
from nutch2py.jobs.generate.due_scan import (
    UNLISTED_ROWS_COUNTER,
    DueRowInput,
    DueRowReader,
    GenerateInput,
    run_selection_job,
)
from nutch2py.jobs.generate.stale_marks import StaleMarkChecker
from nutch2py.jobs.generate.top_n import (
    NO_LIMIT,
    SEPARATOR,
    CandidateEntry,
    TopNSelector,
    format_entry,
    get_url_and_moved_marks,
)
from nutch2py.jobs.job_context import CrawlTables, log_rejected_job, open_job
from nutch2py.jobs.locking.lock_scopes import GENERATE
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, reduce_task_count, run_job
from nutch2py.mapreduce.input_splits import DueIndexSplit, Split
from nutch2py.mapreduce.job_parameters import ALL, NON_NEGATIVE, POSITIVE, TIME_RANGE, BatchParameters
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol, descending_sort_key, partition_key, partition_of_key
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import INJECTED_SITEMAP, Mark, WebPage
from nutch2py.schedule.fetch_schedule import check_fetch_schedule, create_fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.support.clock import MS_PER_DAY, now_ms
from nutch2py.support.reporting import warn
from nutch2py.table import KeyRange, prefix_range
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_partitioner import choose_partition_seed
from nutch2py.url.url_parts import domain_of, host_of

MAX_HELD_ENTRIES = 500_000
"""Entries of which a map task selects the best. For a larger topN it emits all."""


@dataclass(frozen=True, kw_only=True)
class GenerateParameters(BatchParameters):
    """Parameters of a batch.

    ``now``: the clock's time, by which the age of other batches counts, ms since 1970. ``due``: the time by which rows
    must be due; with ``-adddays`` it differs from the clock. ``top_n``: maximum number of URLs.
    ``partitions``: the number of fetch tasks that the list is made for, and of reduce tasks. ``sitemap``: select
    sitemaps, and only these. ``seed``: determines which hosts share a partition.
    """

    now: int
    due: int
    top_n: int = NO_LIMIT
    filter_urls: bool = True
    normalize: bool = True
    sitemap: bool = False
    partitions: int = 1
    seed: int = 0
    ranges: ClassVar = {
        "now": TIME_RANGE,
        "due": ANY_INTEGER,
        "top_n": NON_NEGATIVE,
        "partitions": POSITIVE,
        "seed": NON_NEGATIVE,
    }


class GeneratorJob(TableJob[GenerateParameters]):
    """Due rows to a batch list and marks."""

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True
    plugin_points = ("urlnormalizer", "urlfilter", "scoringfilter")
    title: ClassVar = "GeneratorJob"

    def prepare(self) -> None:
        """Load the filters and normalizers of URLs, the scoring filters and the schedule."""
        conf = self.conf
        self.max_count = conf.get_int("generate.max.count", -1)
        self.group_of = domain_of if conf.get_trimmed("generate.count.mode", "host") == "domain" else host_of
        self.max_distance = conf.get_int("generate.max.distance", -1)
        self.min_score = conf.get_float("generate.min.score", 0.0)
        self.scoring, self.schedule = ScoringFilters(conf), create_fetch_schedule(conf)
        limit = self.parameters.top_n
        self.selector = TopNSelector(limit, self.max_count)
        # more than a task can hold: the reduce tasks cut
        self.streams_entries = limit > MAX_HELD_ENTRIES and (self.max_count <= 0 or limit < NO_LIMIT)
        self.fields = generator_fields(conf)
        self.due_reader: DueRowReader | None = None

    def read_pages(self, split: Split) -> Pages:
        """Yield the rows of a split; of the due index, as many as can be selected."""
        if not isinstance(split, DueIndexSplit):
            return super().read_pages(split)
        self.due_reader = reader = DueRowReader(self.store, split, self.fields)
        if self.scoring.sorts_by_score and reader.best_first:
            # the selector knows where to stop
            self.streams_entries = self.parameters.top_n == NO_LIMIT and self.streams_entries
            reader.set_stop_condition(self.selector, self.scoring, self.min_score)
        return self.iter_readable_pages(reader)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the best entries of a split, by bucket."""
        conf, parameters = self.conf, self.parameters
        normalize = URLNormalizers(conf, "generate_host_count").normalize if parameters.normalize else None
        accept = URLFilters(conf).filter if parameters.filter_urls else None
        streamed = self.streams_entries
        selector = self.selector
        should_fetch, sort_value = self.schedule.should_fetch, self.scoring.generator_sort_value
        counts: Counter[str] = Counter()
        failures = self.plugin_failures
        for key, page in pages:
            counts["rows"] += 1
            markers = page.markers
            mark = markers.get(Mark.GENERATE)
            if mark is not None and not self.is_free(mark):
                counts["already_generated"] += 1
                continue
            if self.max_distance > -1 and int(markers.get(Mark.DISTANCE) or 0) > self.max_distance:
                counts["too_distant"] += 1
                continue
            if (markers.get(Mark.INJECT) == INJECTED_SITEMAP) != parameters.sitemap:
                continue
            try:
                own = unreverse_url(key)
            except ValueError:
                counts["malformed_key"] += 1
                continue
            try:
                due = should_fetch(own, page, parameters.due)
            except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
                failures.pages += 1
                failures.record_exception(self.schedule, own, error)
                continue
            if not due:
                counts["not_due"] += 1
                continue
            failures.pages += 1
            try:
                score = sort_value(own, page, page.score)
            except PluginError as error:
                failures.record(error)
                continue
            if score < self.min_score:
                counts["score_too_low"] += 1
                continue
            order = descending_sort_key(score)
            if selector.worst_score and order > selector.worst_score:
                counts["not_among_best"] += 1
                continue
            url: str | None = None
            try:
                url = normalize(own) if normalize is not None else own
                url = accept(url) if accept is not None and url is not None else url
                target = None if url is None else reverse_url(url)
            except ValueError:
                target = None
            except PluginError as error:
                failures.record(error)
                continue
            if url is None or target is None:
                counts["filtered"] += 1
                continue
            if target == key:
                text = format_entry(order, url)
            else:
                text = format_entry(order, own, url, orjson.dumps(dict(markers.decoded_items())).decode())
            group = (self.group_of(url) or "") if self.max_count > 0 else ""
            if streamed:
                yield self.bucket_key(group, url), f"{text}{SEPARATOR}{group}"
            else:
                selector.add(CandidateEntry(text, group))
        if self.due_reader is not None and self.due_reader.unlisted_rows:
            counts[UNLISTED_ROWS_COUNTER] = self.due_reader.unlisted_rows
        for name, amount in counts.items():
            self.count("generator", name, amount)
        for entry in selector.get_best():
            yield (
                self.bucket_key(entry.group, get_url_and_moved_marks(entry.text)[0]),
                f"{entry.text}{SEPARATOR}{entry.group}",
            )

    def bucket_key(self, group: str, url: str) -> str:
        """Return the key of the bucket for all entries of a group, or without a cap for those of a URL."""
        count = self.parameters.partitions
        if count == 1:
            return partition_key(0, 1)
        group_or_url = group if self.max_count > 0 else url
        return partition_key(crc32(group_or_url.encode("utf-8", "surrogateescape")) % count, count)

    @cached_property
    def _stale_mark_checker(self) -> StaleMarkChecker:
        delay = self.conf.get_int("crawl.gen.delay", 604800000)
        return StaleMarkChecker(BatchListStore(self.conf), delay, self.parameters.now)

    def is_free(self, mark: str) -> bool:
        """Return whether a marked row may be selected because its batch was abandoned."""
        if mark == self.parameters.batch_id:
            self.count("generator", "own_marks")
            return False
        if self._stale_mark_checker(mark):
            self.count("generator", "reclaimed")
            return True
        return False

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[KeyValuePair]:
        """Store the entries of each bucket that may be selected, best first; yield summaries for the driver's cut."""
        with self.derived_store.batch(self.check_lock) as batch:
            for key, texts in groups:
                bucket = partition_of_key(key)
                blocks = CandidateBlockWriter(batch, self.parameters.batch_id, bucket)
                for text in self._apply_limits(texts):
                    blocks.add(text)
                yield bucket, blocks.close()

    def _apply_limits(self, texts: Iterator[str]) -> Iterator[str]:
        """Yield at most topN entries: the best of each URL, and of a group no more than the cap."""
        counts: Counter[str] = Counter()
        seen: set[str] = set()
        limit = self.parameters.top_n
        for text in texts:
            if len(seen) >= limit:
                continue  # the rest of the group must be read
            entry, group = text.rsplit(SEPARATOR, 1)
            url, _ = get_url_and_moved_marks(entry)
            if url in seen:
                continue
            counts[group] += 1
            if self.max_count > 0 and counts[group] > self.max_count:
                self.count("generator", "over_max_count")
                continue
            seen.add(url)
            yield entry


def generator_fields(conf: Configuration) -> frozenset[RecordField]:
    """Return the fields that the GeneratorJob reads; never content."""
    schedule = create_fetch_schedule(conf)
    return frozenset({WebPage.markers, WebPage.score} | schedule.due_fields | ScoringFilters(conf).generator_fields)


def new_batch_id() -> str:
    """Return a new id: ``<unix seconds>-<random>``."""
    return f"{int(time.time())}-{random.randint(0, 2**31 - 1)}"  # noqa: S311 - unique, not secret


@dataclass
class GenerateResult(JobResult):
    """The result of generate: ``batch_id`` and the number of its ``urls``. Unpacks as these two.

    When no row is due, ``urls`` is 0 and there is no batch.
    """

    batch_id: str = ""
    urls: int = 0

    def __iter__(self) -> Iterator[Any]:
        return iter((self.batch_id, self.urls))


def generate(
    conf: Configuration,
    *,
    top_n: int | None = None,
    add_days: float = 0,
    filter_urls: bool = True,
    normalize: bool = True,
    sitemap: bool = False,
    batch_id: str = "",
    now: int = 0,
) -> GenerateResult:
    """Make a batch and return its id, its number of URLs, and the reasons for skipped rows (counters ``generator``).

    Args:
        conf: The configuration of the crawl.
        top_n: Maximum number of URLs, None for unlimited; 0 selects none, as in Nutch.
        add_days: Days to add to ``now`` for the decision which rows are due, not for the age of other batches.
        filter_urls: Whether to apply URL filters.
        normalize: Whether to apply URL normalizers.
        sitemap: Select sitemaps, and only these.
        batch_id: The id of the batch, "" for a new one.
        now: The clock's time (ms since 1970), 0 for the present.
    """
    conf = conf.copy()
    mode = conf.get_trimmed("generate.count.mode", "host")
    if mode not in ("host", "domain"):
        warn(f"Unknown generator.max.count mode '{mode}', using mode=host")
        conf.set("generate.count.mode", "host")
    with log_rejected_job(conf, GENERATE, batch_id):
        if conf.get_int("generate.max.count", -1) == 0:
            raise ConfigurationError("generate.max.count is 0, which excludes every URL: set it to -1 for no limit")
        check_fetch_schedule(conf)
    log = JobLogger("GeneratorJob")
    log.log("Selecting best-scoring urls due for fetch.")
    log.log("starting")
    log.log(f"filtering: {str(filter_urls).lower()}")
    log.log(f"normalizing: {str(normalize).lower()}")
    if sitemap:
        log.log("sitemap: true")
    if top_n is not None:
        log.log(f"topN: {top_n}")
    batch_id = validate_batch_id(batch_id)
    now = now or now_ms()
    due = now + int(add_days * MS_PER_DAY)
    parameters = GenerateParameters(
        batch_id=batch_id,
        now=now,
        due=due,
        top_n=NO_LIMIT if top_n is None else top_n,
        filter_urls=filter_urls,
        normalize=normalize,
        sitemap=sitemap,
        partitions=reduce_task_count(conf),
        seed=choose_partition_seed(conf, batch_id),
    )

    def make_input(tables: CrawlTables) -> GenerateInput:
        if top_n == 0:
            return GenerateInput([], 0, "no URL is selected, as topN is 0")
        by_score = ScoringFilters(conf).sorts_by_score and not sitemap
        limit = parameters.top_n if by_score else NO_LIMIT
        return DueRowInput(conf, tables.store, due, limit, generator_fields(conf))

    return make_batch(conf, log, GeneratorJob, parameters, make_input)


def validate_batch_id(batch_id: str) -> str:
    """Return the id for a new batch, a new id for ""; raise UsageError when it is not valid."""
    batch_id = batch_id or new_batch_id()
    if batch_id == ALL:
        raise UsageError(f"{batch_id} means every batch, and cannot be the id of one: give another")
    BatchParameters(batch_id=batch_id)  # rejects an invalid id before anything changes
    return batch_id


def make_batch(
    conf: Configuration,
    logger: JobLogger,
    job: type[GeneratorJob],
    parameters: GenerateParameters,
    make_input: Callable[[CrawlTables], GenerateInput],
) -> GenerateResult:
    """Run a job that selects rows and makes a batch of them. ``make_input`` returns the input of the job."""
    batch_id = parameters.batch_id
    with open_job(conf, GENERATE, batch_id=batch_id) as tables:
        store, batch_lists = tables.store, tables.batch_lists
        before = batch_lists.get_record(batch_id)
        if before is not None and _is_complete_batch(before, conf):
            logger.log(f"batch {batch_id} already exists and is not updated yet: nothing was added to it")
            logger.log_finished()
            logger.log(f"generated batch id: {batch_id} containing {before.count} URLs")
            return GenerateResult(batch_id=batch_id, urls=before.count)
        if before is not None and before.state == BatchState.GENERATING:
            logger.log(f"restarting batch {batch_id}, which was interrupted")
            batch_lists.remove_generate_marks(store, batch_id, tables.check_lock)
        bulk_delete_batch(conf, batch_lists, batch_id, GeneratorJob.title)
        batch_lists.set_state(batch_id, BatchState.GENERATING)
        blocks = prefix_range(candidate_prefix(batch_id))
        result = run_selection_job(
            conf, logger, job, parameters, make_input(tables), lambda: batch_lists.delete_range(blocks)
        )
        _write_batch(conf, batch_lists=batch_lists, parameters=parameters, result=result)
        tables.check_lock()
        batch_lists.delete_range(blocks)
        count = result.count("generator", "generated")
        foreign = result.count("generator", "own_marks") > 0
        if count or foreign:
            batch_lists.set_state(batch_id, BatchState.GENERATED, UNKNOWN_COUNT if foreign else count)
        else:
            batch_lists.delete_batch(batch_id)
            annotate_job(exit_code=1)
        logger.log_finished()
        logger.log(f"generated batch id: {batch_id} containing {count} URLs")
        return GenerateResult(result.counters, batch_id=batch_id, urls=count)


def _write_batch(
    conf: Configuration, batch_lists: BatchListStore, parameters: GenerateParameters, result: JobResult
) -> None:
    """Cut the candidates at topN, write the batch, and add its counters to ``result``."""
    batch_id = parameters.batch_id
    buckets = [locate_blocks(batch_id, bucket, summaries) for bucket, summaries in sorted(result.output)]

    def read_block(block: CandidateBlock) -> list[bytes]:
        return next(read_block_entries(batch_lists.store, KeyRange(block.key, f"{block.key}\x00")))

    last = find_last_entry(buckets, parameters.top_n, read_block)
    writer_parameters = BatchWriterParameters(
        batch_id=batch_id,
        last_entry=(last or b"").hex(),
        partitions=parameters.partitions,
        seed=parameters.seed,
    )
    splits = make_block_splits(buckets, last, map_task_count(conf))
    written = run_job(BatchWriterJob, conf, splits, writer_parameters, title=f"{GeneratorJob.title}: writing")
    result.add_counters(written.counters)
    result.output = []


def _is_complete_batch(record: BatchRecord, conf: Configuration) -> bool:
    """Return whether a batch is complete, not updated, and recent: generate was run again with its id."""
    is_recent = now_ms() - record.time <= conf.get_int("crawl.gen.delay", 604800000)
    return record.state == BatchState.GENERATED and record.count > 0 and is_recent
