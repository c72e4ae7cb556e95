"""WebTableReader: statistics, one row, a dump of all rows, and the batches that are open."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson

from nutch2py.cells import CellError
from nutch2py.conf import Configuration
from nutch2py.disk import disk_trouble
from nutch2py.errors import InputError, StoreError, UsageError
from nutch2py.joblog.kept import keep_figures, keep_part
from nutch2py.joblog.ledger import note
from nutch2py.joblog.overview import Overview
from nutch2py.jobs.batch_report import age_text, open_batches
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import clock
from nutch2py.jobs.node_dumper import NodeParameters, greatest
from nutch2py.jobs.readdb_markdown import MarkdownReader
from nutch2py.jobs.readdb_stats import StatsCollector
from nutch2py.jobs.readdb_text import float_text, page_fields, page_text
from nutch2py.jobs.snapshot import figures_of, status_name
from nutch2py.jobs.spreads import FIELDS as SPREAD
from nutch2py.jobs.spreads import Spreads
from nutch2py.jobs.works import READ, reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.record import Field
from nutch2py.reporting import say
from nutch2py.table import DataStore, Query
from nutch2py.table.clock import now_ms
from nutch2py.url.keys import name_of_key, reverse_url
from nutch2py.webpage import WebPage

Shown = Mapping[str, bool]
"""Which of content, headers, links and text to show beside the rest."""


@dataclass(frozen=True, kw_only=True)
class StatsParameters(JobParameters):
    """``sort``: count by host, too."""

    sort: bool = False


@dataclass(frozen=True, kw_only=True)
class DumpParameters(JobParameters):
    """``regex``: URLs that match it whole; ``shown``, ``markdown``: what to show of them beside the rest."""

    regex: str = ".*"
    markdown: bool = False
    shown: dict[str, bool] = field(default_factory=dict)


class StatsJob(TableJob[StatsParameters]):
    """Rows to counts: one collector a map task."""

    reduce_steps = 0
    fields = StatsCollector.FIELDS | SPREAD

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield the counts of a split."""
        stats, spreads = StatsCollector(self.parameters.sort), Spreads()
        for key, page in pages:
            stats.add(key, page)
            spreads.add(page)
        yield "stats", stats.to_json()
        yield "spreads", spreads.to_json()


class DumpJob(TableJob[DumpParameters]):
    """Rows to text."""

    reduce_steps = 0
    puts_out_text = True

    def prepare(self) -> None:
        """Read what to show."""
        self.regex = re.compile(self.parameters.regex, re.DOTALL)
        self.markdown = MarkdownReader(self.conf) if self.parameters.markdown else None
        self.fields = _fields(self.parameters.shown, self.markdown)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield each row whose URL matches, as lines."""
        with closing(self.markdown) if self.markdown else nullcontext():
            for key, page in pages:
                url = name_of_key(key)
                if self.regex.fullmatch(url):
                    markdown = self.markdown.read(url, page) if self.markdown else None
                    text = f"{url}\t{page_text(key, page, **self.parameters.shown, markdown=markdown)}"
                    yield "", text.encode("utf-8", "surrogateescape")
                    self.count("WebTableReader", "dumped")


def _fields(shown: Shown, markdown: MarkdownReader | None) -> frozenset[Field[Any]]:
    return page_fields(**shown) | (markdown.fields if markdown else frozenset())


def _store(conf: Configuration) -> DataStore[WebPage]:
    with begin(conf, READ) as tables:
        return tables.store


def collect_stats(conf: Configuration, sort: bool, exact: bool = False) -> StatsCollector:
    """Count the rows by status, retries, scores; with ``sort`` by host, too.

    The figures that jobs keep with the table say the same without reading it. All rows are read where there are none,
    by host, when a row has a cell that no job can read, and when it is to be ``exact``.
    """
    store = _store(conf)
    if not sort and not exact and not (index := store.due_index()).trouble:
        figures = index.figures()
        if not figures.unreadable:
            return StatsCollector.of_figures(figures)
    stats, spreads = StatsCollector(sort), Spreads()
    with begin(conf, reader("readdb")) as tables:
        splits = range_splits(store, Query(StatsJob.fields), map_tasks(conf))
        parameters = StatsParameters(sort=sort)
        result = run_job(StatsJob, conf, splits, parameters, title="WebTableReader", expected=store.row_estimate())
        for kind, counts in result.output:
            if kind == "spreads":
                spreads.merge(counts)
            else:
                stats.merge(StatsCollector.from_json(counts))
        found = figures_of(stats, now_ms())
        note(figures=found)
        if tables.lists.store.exists():  # who reads makes no table
            keep_figures(tables.lists.store, found)
            keep_part(tables.lists.store, "pages", Overview(found.made, histograms=spreads.histograms()))
    return stats


def print_stats(conf: Configuration, sort: bool, exact: bool = False, as_json: bool = False) -> int:
    """Print what :func:`collect_stats` counts, and where it comes from; as JSON one object, and nothing else."""
    _store(conf)  # what is said of a journal comes first
    if as_json:
        stats = collect_stats(conf, sort, exact)
        told = {"kept": stats.kept, **msgspec.to_builtins(figures_of(stats, now_ms()))}
        if sort:
            told["hosts"] = hosts = dict[str, dict[str, int]]()
            for (status, host), count in sorted(stats.hosts.items(), key=lambda each: (each[0][1], each[0][0])):
                of_host = hosts.setdefault(host, {})
                of_host[status_name(status)] = of_host.get(status_name(status), 0) + count
        say(orjson.dumps(told).decode())
        return 0
    say("WebTable statistics start")
    stats = collect_stats(conf, sort, exact)
    say(f"figures: {'kept by the jobs (-exact reads every row)' if stats.kept else 'every row was read'}")
    say(stats.text().removesuffix("\n"))
    return 0


def print_best(conf: Configuration, count: int, least: float, as_json: bool = False) -> int:
    """Print the rows of the highest scores as ``score<TAB>URL``; those below ``least`` are left out."""
    for url, score in greatest(conf, NodeParameters(value="scores", top=count)):
        if score >= least:
            say(orjson.dumps({"url": url, "score": score}).decode() if as_json else f"{float_text(score)}\t{url}")
    return 0


def print_page(conf: Configuration, url: str, shown: Shown, markdown: bool = False) -> int:
    """Print the row of a URL, or of a row key; exit code 1 when there is none."""
    store = _store(conf)
    try:
        key = reverse_url(url)
    except ValueError as error:
        key, url = url, name_of_key(url)
        if key == url:
            raise UsageError(f"{url} is neither a URL nor a row key: {error}") from error
    reader = MarkdownReader(conf) if markdown else None
    page = store.get(key, _fields(shown, reader))
    if page is None:
        say(f"{url} not found")
        return 1
    try:
        with closing(reader) if reader else nullcontext():
            text = page_text(url, page, **shown, markdown=reader.read(url, page) if reader else None)
    except CellError as error:
        raise StoreError(
            f"the row of {url} cannot be shown: {error}; exporttable writes its cells as they are"
        ) from error
    say(text)
    return 0


def dump(conf: Configuration, folder: Path, regex: str, shown: Shown, markdown: bool = False) -> int:
    """Write every row whose URL matches ``regex`` whole into ``folder``, as part files."""
    store = _store(conf)
    try:
        re.compile(regex)
    except re.error as error:
        raise UsageError(f"-regex {regex} is not a regular expression: {error}") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except FileExistsError:
        taken = True
    except OSError as error:
        if (trouble := disk_trouble(error, folder, "name another folder")) is not None:
            raise StoreError(trouble) from error
        raise InputError(f"cannot write into {folder}: {error.strerror}: name a folder that can be made") from error
    if taken:
        raise InputError(f"{folder} exists already: name a folder that does not")
    parameters = DumpParameters(regex=regex or ".*", shown=dict(shown))
    say("WebTable dump: starting")
    query = Query(page_fields(**shown))
    splits = range_splits(store, query, map_tasks(conf))
    rows = store.row_estimate()
    try:
        with begin(conf, reader("readdb")):
            result = run_job(DumpJob, conf, splits, parameters, title="WebTable dump", expected=rows, output=folder)
    except BaseException:  # a part of a dump looks like a whole one, and would be in the way of the next
        shutil.rmtree(folder, ignore_errors=True)
        raise
    say(f"WebTable dump: {result.count('WebTableReader', 'dumped')} rows")
    say("WebTable dump: done")
    return 0


def print_batches(conf: Configuration, as_json: bool = False) -> int:
    """Print the batches that are open, a line each: :class:`nutch2py.jobs.batch_report.BatchReport`.

    Columns, between tabs: id, state, since when, rows, rows done, age, jobs at work; ``-`` for what is not known or not
    there. As JSON one object a line, with times in ms since 1970 and ages in seconds.
    """
    for batch in open_batches(conf):
        if as_json:
            told = {**asdict(batch), "count": None if batch.count < 0 else batch.count}
            say(orjson.dumps(told).decode())
            continue
        count, done = ("-" if number is None or number < 0 else number for number in (batch.count, batch.done))
        columns = [batch.batch_id, batch.state, clock(batch.time / 1000), count, done, age_text(batch.age)]
        say("\t".join(map(str, [*columns, ", ".join(batch.at_work) or "-"])))
    return 0
