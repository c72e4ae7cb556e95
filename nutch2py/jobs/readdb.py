"""WebTableReader: statistics, one row, the best rows, and the batches that are open."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import asdict

import orjson

from nutch2py.cells import CellError
from nutch2py.conf import Configuration
from nutch2py.errors import StoreError, UsageError
from nutch2py.joblog.kept import keep_figures, keep_part
from nutch2py.joblog.ledger import note
from nutch2py.joblog.overview import Overview
from nutch2py.jobs import stats_forms
from nutch2py.jobs.batch_report import age_text, open_batches
from nutch2py.jobs.beginning import CrawlTables, begin
from nutch2py.jobs.job_lines import clock
from nutch2py.jobs.last_stats import KEPT, kept_stats, last_stats
from nutch2py.jobs.node_dumper import NodeParameters, greatest
from nutch2py.jobs.quantiles import chosen_quantiles
from nutch2py.jobs.readdb_markdown import Form, MarkdownReader, Shown, in_form, shown_fields
from nutch2py.jobs.readdb_stats import StatsCollector
from nutch2py.jobs.readdb_text import float_text
from nutch2py.jobs.row_forms import COLUMNS, csv_line, plain
from nutch2py.jobs.snapshot import figures_of
from nutch2py.jobs.stats_by import Breakdown, BreakdownJob, ByParameters, merged
from nutch2py.jobs.works import COUNTING, READ, reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.splits import range_splits
from nutch2py.reporting import say
from nutch2py.table import DataStore, Query
from nutch2py.table.clock import now_ms
from nutch2py.url.keys import name_of_key, reverse_url
from nutch2py.webpage import WebPage


def _store(conf: Configuration) -> DataStore[WebPage]:
    with begin(conf, READ) as tables:
        return tables.store


def collect_stats(conf: Configuration, sort: bool, exact: bool = False) -> StatsCollector:
    """Count the rows by status, retries, scores; with ``sort`` by host, too.

    The figures that jobs keep with the table say the same without reading it. All rows are read where there are none,
    by host, when a row has a cell that no job can read, and when it is to be ``exact``.
    """
    kept = None if sort or exact else kept_stats(_store(conf))
    return kept or count_by(conf, ByParameters(sort=sort)).stats


def _keep(tables: CrawlTables, counted: Breakdown, made: int) -> None:
    """Keep what was counted for who watches the crawl. ``made``: when the counting began, ms since 1970."""
    found = figures_of(counted.stats, made)
    note(figures=found)
    if tables.lists.store.exists():  # who reads makes no table
        keep_figures(tables.lists.store, found)
        keep_part(tables.lists.store, "pages", Overview(found.made, histograms=counted.spreads.histograms()))


def count_by(conf: Configuration, asked: ByParameters) -> Breakdown:
    """Count every row, also by what is asked for: :mod:`nutch2py.jobs.stats_by`."""
    with begin(conf, reader(COUNTING)) as tables:
        store, made = tables.store, now_ms()
        splits = range_splits(store, Query(asked.fields), map_tasks(conf))
        result = run_job(BreakdownJob, conf, splits, asked, title="WebTableReader", expected=store.row_estimate())
        found = merged(result.output, asked)
        _keep(tables, found, made)
    return found


def print_stats(
    conf: Configuration,
    asked: ByParameters,
    exact: bool = False,
    form: Form = "text",
    last: bool = False,
) -> int:
    """Print the statistics with what is ``asked`` for, and where they come from; as JSON or CSV nothing else.

    They are those that jobs keep with the table, unless ``exact``, or more is asked for than these tell. ``last``:
    those that were counted last, and no row is read (:mod:`nutch2py.jobs.last_stats`).
    """
    store = _store(conf)  # what is said of a journal comes first
    quantiles = chosen_quantiles(conf)
    if form == "text":
        say("WebTable statistics start")
    counted = last_stats(conf, store) if last else None
    if counted is not None:
        now, found = counted.made, Breakdown(counted.stats)
    elif asked.by or asked.quantiles:
        now, found = asked.now, count_by(conf, asked)
    else:
        now = now_ms()
        found = Breakdown(collect_stats(conf, asked.sort, exact))
    if form == "text":
        read = KEPT if found.stats.kept else "every row was read"
        say(f"figures: {read if counted is None else counted.told(now_ms())}")
        say(found.stats.text(stats_forms.lines(found, quantiles, now)).removesuffix("\n"))
        return 0
    told = stats_forms.as_json(found, quantiles, now, sort=asked.sort)
    if counted is not None:
        told["since"] = counted.since
    if form == "json":
        say(orjson.dumps(told).decode())
    else:
        for values in stats_forms.csv_rows(told):
            say(csv_line(values))
    return 0


def print_best(conf: Configuration, count: int, least: float, form: Form = "text") -> int:
    """Print the rows of the highest scores as ``score<TAB>URL``; those below ``least`` are left out."""
    if form == "csv":
        say(csv_line(("score", "url")))
    for url, score in greatest(conf, NodeParameters(value="scores", top=count)):
        if score < least:
            continue
        match form:
            case "json":
                say(orjson.dumps({"url": plain(url), "score": score}).decode())
            case "csv":
                say(csv_line((float_text(score), url)))
            case _:
                say(f"{float_text(score)}\t{url}")
    return 0


def print_page(conf: Configuration, url: str, shown: Shown, markdown: bool = False, form: Form = "text") -> int:
    """Print the row of a URL, or of a row key; exit code 1 when there is none."""
    store = _store(conf)
    try:
        key = reverse_url(url)
    except ValueError as error:
        key, url = url, name_of_key(url)
        if key == url:
            raise UsageError(f"{url} is neither a URL nor a row key: {error}") from error
    reader = MarkdownReader(conf) if markdown else None
    page = store.get(key, shown_fields(shown, reader))
    if page is None:
        if form == "text":
            say(f"{url} not found")
        return 1
    try:
        with closing(reader) if reader else nullcontext():
            text = in_form(form, key, url, page, shown, reader)
    except CellError as error:
        raise StoreError(
            f"the row of {url} cannot be shown: {error}; exporttable writes its cells as they are"
        ) from error
    if form == "csv":
        say(csv_line(COLUMNS))
    say(text)
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
