"""WebTableReader: statistics, one row, a dump of all rows, and the batches that are open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.errors import InputError, UsageError
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.joblog import clock
from nutch2py.jobs.journal import recover
from nutch2py.jobs.readdb_stats import StatsCollector
from nutch2py.jobs.readdb_text import page_fields, page_text
from nutch2py.jobs.tables import existing_table
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.splits import RangeSplit
from nutch2py.table import Query
from nutch2py.url.keys import reverse_url, unreverse_url

Shown = Mapping[str, bool]
"""Which of content, headers, links and text to show beside the rest."""
_SHOWN = ("content", "headers", "links", "text")


class StatsJob(TableJob):
    """Rows to counts: one collector a map task."""

    reduce_steps = 0
    fields = StatsCollector.FIELDS

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield the counts of a split."""
        stats = StatsCollector(self.conf.get_bool("db.reader.stats.sort"))
        for key, page in pages:
            stats.add(key, page)
        yield "stats", stats.to_json()


class DumpJob(TableJob):
    """Rows to text."""

    reduce_steps = 0
    puts_out_text = True

    def prepare(self) -> None:
        """Read what to show."""
        self.shown = {name: self.conf.get_bool(f"db.reader.dump.{name}") for name in _SHOWN}
        self.regex = re.compile(self.conf.get("db.reader.dump.regex") or ".*", re.DOTALL)
        self.fields = page_fields(**self.shown)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield each row whose URL matches, as lines."""
        for key, page in pages:
            try:
                url = unreverse_url(key)
            except ValueError:
                url = key
            if self.regex.fullmatch(url):
                text = f"{url}\t{page_text(key, page, **self.shown)}"
                yield "", text.encode("utf-8", "surrogateescape")
                self.count("WebTableReader", "dumped")


def print_stats(conf: Configuration, sort: bool) -> int:
    """Print counts by status, retries, scores; with ``sort`` by host, too."""
    store = existing_table(conf)
    conf = conf.copy()
    conf.set("db.reader.stats.sort", sort)
    print("WebTable statistics start")
    splits = [RangeSplit(key_range) for key_range in store.key_ranges(Query(StatsJob.fields), map_tasks(conf))]
    result = run_job(StatsJob, conf, splits, title="WebTableReader", expected=store.row_estimate())
    stats = StatsCollector(sort)
    for _, counts in result.output:
        stats.merge(StatsCollector.from_json(counts))
    print(stats.text(), end="")
    return 0


def print_page(conf: Configuration, url: str, shown: Shown) -> int:
    """Print the row of a URL; exit code 1 when there is none."""
    store = existing_table(conf)
    try:
        key = reverse_url(url)
    except ValueError as error:
        raise UsageError(f"{url} is not a URL: {error}") from error
    page = store.get(key, page_fields(**shown))
    if page is None:
        print(f"{url} not found")
        return 1
    print(page_text(url, page, **shown))
    return 0


def dump(conf: Configuration, folder: Path, regex: str, shown: Shown) -> int:
    """Write every row whose URL matches ``regex`` whole into ``folder``, as part files."""
    store = existing_table(conf)
    try:
        re.compile(regex)
    except re.error as error:
        raise UsageError(f"-regex {regex} is not a regular expression: {error}") from error
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already: name a folder that does not")
    conf = conf.copy()
    for name, wanted in shown.items():
        conf.set(f"db.reader.dump.{name}", wanted)
    conf.set("db.reader.dump.regex", regex)
    print("WebTable dump: starting")
    query = Query(page_fields(**shown))
    splits = [RangeSplit(key_range) for key_range in store.key_ranges(query, map_tasks(conf))]
    result = run_job(DumpJob, conf, splits, title="WebTable dump", expected=store.row_estimate(), output=folder)
    print(f"WebTable dump: {result.count('WebTableReader', 'dumped')} rows")
    print("WebTable dump: done")
    return 0


def print_batches(conf: Configuration) -> int:
    """Print the batches that are open: id, state, since when, number of rows (``-`` when it has no complete list)."""
    recover(conf)
    for state in BatchLists(conf).states():
        count = str(state.count) if state.count >= 0 else "-"
        print(f"{state.batch_id}\t{state.state}\t{clock(state.time / 1000)}\t{count}")
    return 0
