"""InjectorJob: seed files into the table.

A seed line is ``URL``, then tab-separated ``name=value`` metadata; ``nutch.score``, ``nutch.fetchInterval`` and
``nutch.fetchInterval.fixed`` (seconds) set the row up, ``-sitemap`` says that the URL is a sitemap, and
``sitemaps: /a.xml /b.xml`` adds one for each path. Empty lines and lines with ``#`` first are skipped. Of lines with
the same URL the last wins. Rows that exist are left alone, unless ``db.injector.overwrite`` (they are set up anew) or
``db.injector.update`` (the score, interval and metadata that the line gives are set).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from nutch2py.cells import encode_text
from nutch2py.conf import Configuration
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.seeds import Seed, faults, named_seeds, parse_seed_line, seed_files
from nutch2py.jobs.works import INJECT
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job, runner_name
from nutch2py.mapreduce.hadoop import local_copy
from nutch2py.mapreduce.job import Pair, TableJob
from nutch2py.mapreduce.parameters import TIME, JobParameters
from nutch2py.mapreduce.splits import FileSplit, lines_before, read_lines, split_files
from nutch2py.plugin_guard import PluginError
from nutch2py.record import Mutation
from nutch2py.schedule.abstract import FIXED_INTERVAL_KEY
from nutch2py.schedule.fetch_schedule import check_schedule
from nutch2py.schedule.intervals import FetchIntervals
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.table import WriteBatch
from nutch2py.table.clock import now_ms
from nutch2py.url.keys import reverse_url
from nutch2py.url.url_filters import URLFilters
from nutch2py.url.url_normalizers import URLNormalizers
from nutch2py.webpage import INJECTED_PAGE, INJECTED_SITEMAP, Mark, WebPage

_ROWS = 1000  # rows looked up at once
_KINDS = 1000  # of seeds, whose rows are remembered
_NAMED = 100  # lines of a piece of a file that are named
_SHOWN = 200  # characters of a URL in a message


@dataclass(frozen=True, kw_only=True)
class InjectParameters(JobParameters):
    """``now``: the fetch time that seeds get, ms since 1970. The others: whether filters and normalizers see them."""

    now: int
    filter_urls: bool = True
    normalize: bool = True
    ranges: ClassVar = {"now": TIME}


class _Rules:
    """What the configuration says about seeds; malformed properties and rule files are found when it is made."""

    def __init__(self, conf: Configuration) -> None:
        self.normalizers, self.filters = URLNormalizers(conf, "inject"), URLFilters(conf)
        self.scoring = ScoringFilters(conf)
        self.alike = self.scoring.seeds_alike
        self.overwrite = conf.get_bool("db.injector.overwrite")
        self.update = conf.get_bool("db.injector.update")
        self.score = conf.get_float("db.score.injected", 1.0)
        self.interval = FetchIntervals.of(conf).default


class InjectorJob(TableJob[InjectParameters]):
    """Map: lines to row keys and seeds. Reduce: the last seed of a key into its row."""

    fields = frozenset(
        {WebPage.fetch_time, WebPage.fetch_interval, WebPage.score, WebPage.markers, WebPage.metadata, WebPage.status}
    )

    plugin_points = ("urlnormalizer", "urlfilter", "scoringfilter")

    def prepare(self) -> None:
        """Load what decides about URLs and rows."""
        self.rules = _Rules(self.conf)
        self.made: dict[tuple[object, ...], Mutation] = {}

    def map_file(self, split: FileSplit) -> Iterator[Pair]:
        """Yield (row key, seed) of every line that passes; the seed's first two items order it among all lines."""
        asked = self.parameters
        normalize = self.rules.normalizers.normalize_or_raise if asked.normalize else str
        accept = self.rules.filters.accept if asked.filter_urls else str
        injected = filtered = 0
        self.named, self.lines_before = 0, -1
        for number, line in enumerate(read_lines(split)):
            text = line.decode("utf-8", "replace").removeprefix("\ufeff")
            seeds = parse_seed_line(text)
            wrong = faults(text) if seeds and "\t" in text else []
            if "\ufffd" in text and seeds and not _is_utf8(line):
                wrong.append("it is not UTF-8: what cannot be read is replaced")
            for fault in wrong:
                self.count("injector", "faults")
                self._name(split, number, fault)
            for seed in seeds:
                self.failures.pages += 1
                reason = "a normalizer or a filter rejects it"
                try:
                    normalized = normalize(seed.url)
                    url = None if normalized is None else accept(normalized)
                    key = None if url is None else reverse_url(url)
                except ValueError as error:
                    reason, key = str(error), None
                except PluginError as error:
                    self.failures.note(error)
                    reason, key = error.reason, None
                if key is None:
                    filtered += 1
                    self._name(split, number, f"{seed.url[:_SHOWN]} is not injected: {reason}")
                    continue
                injected += 1
                yield key, [split.order, number, url, *seed[1:]]
            self.channel.advance()
        self.count("injector", "urls_injected", injected)
        self.count("injector", "urls_filtered", filtered)

    def _name(self, split: FileSplit, number: int, fault: str) -> None:
        """Say what is wrong with a line, with its file and its number in it; not of more than a hundred."""
        self.named += 1
        if self.named > _NAMED:
            return
        if self.lines_before < 0:
            self.lines_before = lines_before(split)
        more = " (no further ones are named)" if self.named == _NAMED else ""
        self.channel.line(f"{split.path} line {self.lines_before + number + 1}: {fault}{more}")

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Write the last seed of each key."""
        pending: dict[str, Seed] = {}
        with self.writing() as batch:
            for key, values in groups:
                last = next(values)
                for value in values:
                    if value[:2] > last[:2]:
                        last = value
                _, _, *seed = last
                pending[key] = Seed(*seed)
                if len(pending) >= _ROWS:
                    self._inject(pending, batch)
            self._inject(pending, batch)
        yield from ()

    def _inject(self, pending: dict[str, Seed], batch: WriteBatch) -> None:
        keys = list(pending)
        new = 0
        for key, row in zip(keys, self.store.get_many(keys, self.fields), strict=True):
            seed = pending[key]
            if row is None or self.rules.overwrite:
                self.failures.pages += 1
                try:
                    if row is None:
                        batch.mutate(key, self._new_row(seed))
                        new += 1
                        continue
                    page = self._set_up(row, seed)
                except PluginError as error:  # a seed without its score would be half a seed
                    self.failures.note(error)
                    continue
                batch.put(key, page)
                self.count("injector", "urls_overwritten")
                continue
            self.count("injector", "urls_merged")
            if self.rules.update and self.readable(key, row):
                self._merge(row, seed)
                batch.put(key, row)
        if new:
            self.count("injector", "urls_new", new)
        pending.clear()

    def _new_row(self, seed: Seed) -> Mutation:
        """Return what makes the row of a seed: the same for all that ask for the same, but for their URLs."""
        asked = (seed.score, seed.interval, seed.fixed, seed.sitemap)
        known = None if seed.metadata or not self.rules.alike else self.made.get(asked)
        if known is None:
            made = self._set_up(WebPage(), seed).mutation()
            assert made is not None
            known = made
            if not seed.metadata:
                if len(self.made) >= _KINDS:
                    self.made.clear()
                self.made[asked] = known
        return known

    def _set_up(self, page: WebPage, seed: Seed) -> WebPage:
        page.fetch_time = self.parameters.now
        page.fetch_interval = self.rules.interval if seed.interval is None else seed.interval
        page.score = self.rules.score if seed.score is None else seed.score
        page.metadata = self._metadata(seed)
        page.markers = {
            Mark.DISTANCE: "0",
            Mark.INJECT: INJECTED_SITEMAP if seed.sitemap else INJECTED_PAGE,
        }
        self.rules.scoring.injected_score(seed.url, page)
        return page

    def _merge(self, page: WebPage, seed: Seed) -> None:
        if seed.interval is not None:
            page.fetch_interval = seed.interval
        if seed.score is not None:
            page.score = seed.score
        page.metadata.update(self._metadata(seed))

    def _metadata(self, seed: Seed) -> dict[str, bytes]:
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
    """Inject the seeds of a file or folder, here or at ``hdfs://…``; return the counters (group ``injector``)."""
    log = JobLines("InjectorJob")
    log.line(f"Injecting urlDir: {seed_dir}")
    with local_copy(conf, named_seeds(seed_dir)) as path:
        files = seed_files(path)
        for file in files:
            log.raw(f"Injecting seed URL file {file}")
        _Rules(conf)  # before there is a table: a mistake leaves everything as it was
        check_schedule(conf)
        runner_name(conf)
        with begin(conf, INJECT, makes=True):
            splits = split_files(files, map_tasks(conf))
            parameters = InjectParameters(now=now_ms(), filter_urls=filter_urls, normalize=normalize)
            result = run_job(InjectorJob, conf, splits, parameters, title="InjectorJob")
    log.line(f"total number of urls rejected by filters: {result.count('injector', 'urls_filtered')}")
    if result.count("injector", "faults"):
        log.line(f"total number of faults in seed lines, whose URLs are injected: {result.count('injector', 'faults')}")
    injected = result.count("injector", "urls_injected")
    log.line(f"total number of urls injected after normalization and filtering: {injected}")
    log.line(f"total number of urls already in the table: {result.count('injector', 'urls_merged')}")
    log.line(f"total number of new rows: {result.count('injector', 'urls_new')}")
    log.finished("Injector", "elapsed")
    return result
