"""InjectorJob: write seed URLs from files into the table.

A seed line is a URL, then tab-separated ``name=value`` metadata. ``nutch.score``, ``nutch.fetchInterval`` and
``nutch.fetchInterval.fixed`` (seconds) set fields of the row, ``-sitemap`` marks the URL as a sitemap, and
``sitemaps: /a.xml /b.xml`` adds a sitemap for each path. Empty lines and lines that start with ``#`` are skipped. Of
several lines with the same URL the last one counts. Existing rows stay as they are, unless ``db.injector.overwrite``
(they are initialized again) or ``db.injector.update`` (they get the score, interval and metadata of the line) is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.inject.seeds import Seed, find_line_errors, find_seed_files, parse_seed_line, require_seed_path
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import INJECT
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job, runner_name
from nutch2py.mapreduce.input_splits import FileSplit, count_lines_before, read_split_lines, split_files
from nutch2py.mapreduce.job_parameters import TIME_RANGE, JobParameters
from nutch2py.mapreduce.runners.hadoop.hadoop_client import download_input
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, TableJob
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import Mutation
from nutch2py.records.webpage import INJECTED_PAGE, INJECTED_SITEMAP, Mark, WebPage
from nutch2py.schedule.abstract_fetch_schedule import FIXED_INTERVAL_KEY
from nutch2py.schedule.fetch_intervals import FetchIntervals
from nutch2py.schedule.fetch_schedule import check_fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.support.clock import now_ms
from nutch2py.support.invariants import not_none
from nutch2py.table import WriteBatch
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.keys import reverse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers

_ROWS_PER_READ = 1000  # rows looked up at once
_MAX_CACHED_ROWS = 1000  # rows of seeds that are kept for reuse
_MAX_REPORTED_LINES = 100  # lines of a split that are reported
_MAX_SHOWN_CHARS = 200  # characters of a URL in a message


@dataclass(frozen=True, kw_only=True)
class InjectParameters(JobParameters):
    """``now``: the fetch time of seeds, ms since 1970. The others: whether to apply filters and normalizers."""

    now: int
    filter_urls: bool = True
    normalize: bool = True
    ranges: ClassVar = {"now": TIME_RANGE}


class _InjectSettings:
    """Settings for seeds. Construction raises for malformed properties and rule files."""

    def __init__(self, conf: Configuration) -> None:
        self.normalizers, self.filters = URLNormalizers(conf, "inject"), URLFilters(conf)
        self.scoring = ScoringFilters(conf)
        self.seeds_are_alike = self.scoring.ignores_seed_url
        self.overwrite = conf.get_bool("db.injector.overwrite")
        self.update = conf.get_bool("db.injector.update")
        self.score = conf.get_float("db.score.injected", 1.0)
        self.interval = FetchIntervals.from_conf(conf).default


class InjectorJob(TableJob[InjectParameters]):
    """Map: lines to row keys and seeds. Reduce: write the last seed of each key to its row."""

    fields = frozenset(
        {WebPage.fetch_time, WebPage.fetch_interval, WebPage.score, WebPage.markers, WebPage.metadata, WebPage.status}
    )

    plugin_points = ("urlnormalizer", "urlfilter", "scoringfilter")

    def prepare(self) -> None:
        """Load the URL filters, normalizers and scoring filters."""
        self.settings = _InjectSettings(self.conf)
        self.new_row_cache: dict[tuple[object, ...], Mutation] = {}

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        """Yield (row key, seed) of every accepted line. The seed's first two items order it among all lines."""
        parameters = self.parameters
        normalize = self.settings.normalizers.normalize_or_raise if parameters.normalize else str
        accept = self.settings.filters.filter_link if parameters.filter_urls else str
        injected = filtered = 0
        self.reported_lines, self.lines_before = 0, -1
        for number, line in enumerate(read_split_lines(split)):
            text = line.decode("utf-8", "replace").removeprefix("\ufeff")
            seeds = parse_seed_line(text)
            problems = find_line_errors(text) if seeds and "\t" in text else []
            if "\ufffd" in text and seeds and not _is_utf8(line):
                problems.append("it is not UTF-8: invalid bytes are replaced")
            for problem in problems:
                self.count("injector", "faults")
                self._report_line(split, number, problem)
            for seed in seeds:
                self.plugin_failures.pages += 1
                reason = "a normalizer or a filter rejects it"
                try:
                    normalized = normalize(seed.url)
                    url = None if normalized is None else accept(normalized)
                    key = None if url is None else reverse_url(url)
                except ValueError as error:
                    reason, key = str(error), None
                except PluginError as error:
                    self.plugin_failures.record(error)
                    reason, key = error.reason, None
                if key is None:
                    filtered += 1
                    self._report_line(split, number, f"{seed.url[:_MAX_SHOWN_CHARS]} is not injected: {reason}")
                    continue
                injected += 1
                yield key, [split.order, number, url, *seed[1:]]
            self.channel.advance()
        self.count("injector", "urls_injected", injected)
        self.count("injector", "urls_filtered", filtered)

    def _report_line(self, split: FileSplit, number: int, problem: str) -> None:
        """Log a problem of a line, with its file and line number. Only the first hundred are logged."""
        self.reported_lines += 1
        if self.reported_lines > _MAX_REPORTED_LINES:
            return
        if self.lines_before < 0:
            self.lines_before = count_lines_before(split)
        more = " (further ones are not logged)" if self.reported_lines == _MAX_REPORTED_LINES else ""
        self.channel.log_line(f"{split.path} line {self.lines_before + number + 1}: {problem}{more}")

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Write the last seed of each key."""
        pending: dict[str, Seed] = {}
        with self.write_batch() as batch:
            for key, values in groups:
                last = next(values)
                for value in values:
                    if value[:2] > last[:2]:
                        last = value
                _, _, *seed = last
                pending[key] = Seed(*seed)
                if len(pending) >= _ROWS_PER_READ:
                    self._write_seeds(pending, batch)
            self._write_seeds(pending, batch)
        yield from ()

    def _write_seeds(self, pending: dict[str, Seed], batch: WriteBatch) -> None:
        keys = list(pending)
        new = 0
        for key, row in zip(keys, self.store.get_many(keys, self.fields), strict=True):
            seed = pending[key]
            if row is None or self.settings.overwrite:
                self.plugin_failures.pages += 1
                try:
                    if row is None:
                        batch.mutate(key, self._make_new_row(seed))
                        new += 1
                        continue
                    page = self._initialize_row(row, seed)
                except PluginError as error:  # without its score, the row would be incomplete
                    self.plugin_failures.record(error)
                    continue
                batch.put(key, page)
                self.count("injector", "urls_overwritten")
                continue
            self.count("injector", "urls_merged")
            if self.settings.update and self.is_readable(key, row):
                self._update_row(row, seed)
                batch.put(key, row)
        if new:
            self.count("injector", "urls_new", new)
        pending.clear()

    def _make_new_row(self, seed: Seed) -> Mutation:
        """Return the mutation that creates the row of a seed. Seeds with the same settings share it."""
        settings = (seed.score, seed.interval, seed.fixed, seed.sitemap)
        known = None if seed.metadata or not self.settings.seeds_are_alike else self.new_row_cache.get(settings)
        if known is None:
            known = not_none(self._initialize_row(WebPage(), seed).mutation(), "mutation of a new row")
            if not seed.metadata:
                if len(self.new_row_cache) >= _MAX_CACHED_ROWS:
                    self.new_row_cache.clear()
                self.new_row_cache[settings] = known
        return known

    def _initialize_row(self, page: WebPage, seed: Seed) -> WebPage:
        page.fetch_time = self.parameters.now
        page.fetch_interval = self.settings.interval if seed.interval is None else seed.interval
        page.score = self.settings.score if seed.score is None else seed.score
        page.metadata = self._build_metadata(seed)
        page.markers = {
            Mark.DISTANCE: "0",
            Mark.INJECT: INJECTED_SITEMAP if seed.sitemap else INJECTED_PAGE,
        }
        self.settings.scoring.injected_score(seed.url, page)
        return page

    def _update_row(self, page: WebPage, seed: Seed) -> None:
        if seed.interval is not None:
            page.fetch_interval = seed.interval
        if seed.score is not None:
            page.score = seed.score
        page.metadata.update(self._build_metadata(seed))

    def _build_metadata(self, seed: Seed) -> dict[str, bytes]:
        entries = {name: encode_text(value) for name, value in seed.metadata.items()}
        if seed.fixed:
            entries[FIXED_INTERVAL_KEY] = str(seed.interval).encode()
        return entries


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def inject(conf: Configuration, seed_dir: str, *, filter_urls: bool = True, normalize: bool = True) -> JobResult:
    """Inject the seeds of a local or ``hdfs://…`` file or folder and return the counters (group ``injector``)."""
    log = JobLogger("InjectorJob")
    log.log(f"Injecting urlDir: {seed_dir}")
    with download_input(conf, require_seed_path(seed_dir)) as path:
        files = find_seed_files(path)
        for file in files:
            log.log_raw(f"Injecting seed URL file {file}")
        _InjectSettings(conf)  # before the table is created, so that a mistake changes nothing
        check_fetch_schedule(conf)
        runner_name(conf)
        with open_job(conf, INJECT, creates_table=True):
            splits = split_files(files, map_task_count(conf))
            parameters = InjectParameters(now=now_ms(), filter_urls=filter_urls, normalize=normalize)
            result = run_job(InjectorJob, conf, splits, parameters, title="InjectorJob")
    log.log(f"total number of urls rejected by filters: {result.count('injector', 'urls_filtered')}")
    if result.count("injector", "faults"):
        log.log(f"total number of faults in seed lines, whose URLs are injected: {result.count('injector', 'faults')}")
    injected = result.count("injector", "urls_injected")
    log.log(f"total number of urls injected after normalization and filtering: {injected}")
    log.log(f"total number of urls already in the table: {result.count('injector', 'urls_merged')}")
    log.log(f"total number of new rows: {result.count('injector', 'urls_new')}")
    log.log_finished("Injector", "elapsed")
    return result
