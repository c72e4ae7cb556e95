"""Commands of readdb (Nutch's WebTableReader): statistics, one row, top rows, and open batches."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import asdict

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError, UsageError
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_recorder import annotate_job
from nutch2py.joblog.stored_overview import store_overview_part, store_table_stats
from nutch2py.jobs.job_context import CrawlTables, open_job
from nutch2py.jobs.locking.lock_scopes import READ, STATS_JOB_NAME, make_reader_scope
from nutch2py.jobs.monitoring.batch_report import format_age, list_open_batches
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.jobs.readdb import stats_formats
from nutch2py.jobs.readdb.last_stats import KEPT_STATS_SOURCE, get_last_stats
from nutch2py.jobs.readdb.stats_breakdown import BreakdownJob, BreakdownParameters, StatsBreakdown, merge_breakdown
from nutch2py.jobs.row_output.row_formats import CSV_COLUMNS, format_csv_line, to_json_value
from nutch2py.jobs.row_output.row_renderer import MarkdownRenderer, OutputFormat, RowSections, render_row, shown_fields
from nutch2py.jobs.row_output.row_text import format_float
from nutch2py.jobs.stats.kept_stats import get_kept_stats
from nutch2py.jobs.stats.quantile_sketch import read_quantiles
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.jobs.tools.node_dumper import NodeDumperParameters, find_top_nodes
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.records.cells import CellError
from nutch2py.records.webpage import WebPage
from nutch2py.support.clock import now_ms
from nutch2py.support.reporting import print_output
from nutch2py.table import DataStore, TableQuery
from nutch2py.url.display_url import display_host, display_url
from nutch2py.url.idn import url_to_ascii
from nutch2py.url.keys import reverse_url, url_or_key


def _open_table(conf: Configuration) -> DataStore[WebPage]:
    with open_job(conf, READ) as tables:
        return tables.store


def collect_stats(conf: Configuration, by_host: bool, exact: bool = False) -> StatsCollector:
    """Count the rows by status, retries and score; with ``by_host`` also by host.

    Uses the statistics kept with the table where possible. Reads all rows if the store keeps none, if a row is
    unreadable, with ``by_host`` and with ``exact``.
    """
    kept = None if by_host or exact else get_kept_stats(_open_table(conf))
    return kept or count_breakdown(conf, BreakdownParameters(sort=by_host)).stats


def _save_stats(tables: CrawlTables, counted: StatsBreakdown, counted_at: int) -> None:
    """Store the statistics for monitoring; ``counted_at``: start of the count, ms since 1970."""
    found = counted.stats.to_table_stats(counted_at)
    annotate_job(table_stats=found)
    if tables.batch_lists.store.exists():  # a reading command creates no table
        store_table_stats(tables.batch_lists.store, found)
        store_overview_part(
            tables.batch_lists.store,
            "pages",
            Overview(found.counted_at, histograms=counted.histograms.make_histograms()),
        )


def count_breakdown(conf: Configuration, parameters: BreakdownParameters) -> StatsBreakdown:
    """Count every row, also by the requested kinds of names (:mod:`nutch2py.jobs.readdb.stats_breakdown`)."""
    with open_job(conf, make_reader_scope(STATS_JOB_NAME)) as tables:
        store, counted_at = tables.store, now_ms()
        splits = range_splits(store, TableQuery(parameters.fields), map_task_count(conf))
        result = run_job(
            BreakdownJob, conf, splits, parameters, title="WebTableReader", expected_rows=store.row_estimate()
        )
        found = merge_breakdown(result.output, parameters)
        _save_stats(tables, found, counted_at)
    return found


def print_stats(
    conf: Configuration,
    parameters: BreakdownParameters,
    exact: bool = False,
    output_format: OutputFormat = "text",
    use_last: bool = False,
    shows_unicode: bool = False,
) -> int:
    """Print the statistics, in text format with their source.

    Args:
        conf: Configuration of the crawl.
        parameters: Breakdowns and quantiles to add; they require a scan.
        exact: Read every row instead of using the statistics kept with the table.
        output_format: text, json or csv.
        shows_unicode: Show hosts in Unicode in text format.
        use_last: Print the last counted statistics without a scan (:mod:`nutch2py.jobs.readdb.last_stats`).
    """
    store = _open_table(conf)  # first, because it may print lines on a journal
    quantiles = read_quantiles(conf)
    if output_format == "text":
        print_output("WebTable statistics start")
    counted = get_last_stats(conf, store) if use_last else None
    if counted is not None:
        now, found = counted.counted_at, StatsBreakdown(counted.stats)
    elif parameters.by or parameters.quantiles:
        now, found = parameters.now, count_breakdown(conf, parameters)
    else:
        now = now_ms()
        found = StatsBreakdown(collect_stats(conf, parameters.sort, exact))
    if output_format == "text":
        source = KEPT_STATS_SOURCE if found.stats.kept else "every row was read"
        print_output(f"statistics: {source if counted is None else counted.describe_source(now_ms())}")
        show_host = display_host if shows_unicode else str
        lines = stats_formats.format_stats_lines(found, quantiles, now, show_host)
        print_output(found.stats.format_text(lines, show_host).removesuffix("\n"))
        return 0
    values_by_name = stats_formats.stats_to_json(found, quantiles, now, by_host=parameters.sort)
    if counted is not None:
        values_by_name["since"] = counted.jobs_since
    if output_format == "json":
        print_output(orjson.dumps(values_by_name).decode())
    else:
        for values in stats_formats.iter_csv_rows(values_by_name):
            print_output(format_csv_line(values))
    return 0


def print_top_pages(
    conf: Configuration, limit: int, min_score: float, output_format: OutputFormat = "text", shows_unicode: bool = False
) -> int:
    """Print the rows with the highest scores, at least ``min_score``, as ``score<TAB>URL``."""
    if output_format == "csv":
        print_output(format_csv_line(("score", "url")))
    for url, score in find_top_nodes(conf, NodeDumperParameters(value="scores", top=limit)):
        if score < min_score:
            continue
        match output_format:
            case "json":
                print_output(orjson.dumps({"url": to_json_value(url), "score": score}).decode())
            case "csv":
                print_output(format_csv_line((format_float(score), url)))
            case _:
                print_output(f"{format_float(score)}\t{display_url(url) if shows_unicode else url}")
    return 0


def print_page(
    conf: Configuration,
    url: str,
    sections: RowSections,
    markdown: bool = False,
    output_format: OutputFormat = "text",
    shows_unicode: bool = False,
) -> int:
    """Print the row of a URL or row key; return exit code 1 if it does not exist.

    A URL with a host in Unicode, which is what people see, is the row of its ``xn--`` host if it has none of its own.
    """
    store = _open_table(conf)
    try:
        key = reverse_url(url)
    except ValueError as error:
        key, url = url, url_or_key(url)
        if key == url:
            raise UsageError(f"{url} is neither a URL nor a row key: {error}") from error
    reader = MarkdownRenderer(conf) if markdown else None
    fields = shown_fields(sections, reader)
    page = store.get(key, fields)
    if page is None and (ascii_url := url_to_ascii(url)) is not None and ascii_url != url:
        key, url = reverse_url(ascii_url), ascii_url
        page = store.get(key, fields)
    if page is None:
        if output_format == "text":
            print_output(f"{url} not found")
        return 1
    try:
        with closing(reader) if reader else nullcontext():
            show_url = display_url if shows_unicode else str
            text = render_row(output_format, key, url, page, sections, reader, show_url=show_url)
    except CellError as error:
        raise StoreError(f"the row of {url} cannot be shown: {error}; exporttable writes its raw cells") from error
    if output_format == "csv":
        print_output(format_csv_line(CSV_COLUMNS))
    print_output(text)
    return 0


def print_batches(conf: Configuration, as_json: bool = False) -> int:
    """Print the open batches, one per line (:class:`nutch2py.jobs.monitoring.batch_report.BatchReport`).

    Columns, separated by tabs: id, state, time of the state, rows, rows done, age, running jobs; ``-`` for unknown or
    none. As JSON one object per line, with times in ms since 1970 and ages in seconds.
    """
    for batch in list_open_batches(conf):
        if as_json:
            values_by_name = {**asdict(batch), "count": None if batch.count < 0 else batch.count}
            print_output(orjson.dumps(values_by_name).decode())
            continue
        count, done = ("-" if number is None or number < 0 else number for number in (batch.count, batch.done))
        columns = [batch.batch_id, batch.state, format_time(batch.time / 1000), count, done, format_age(batch.age)]
        print_output("\t".join(map(str, [*columns, ", ".join(batch.running_jobs) or "-"])))
    return 0
