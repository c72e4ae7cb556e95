"""readdb -dump: writes selected rows as part files, as text (as readdb -url), JSON or CSV."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from zlib import crc32

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import NumberRange
from nutch2py.errors import InputError, UsageError
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import READ, make_reader_scope
from nutch2py.jobs.row_output.row_formats import CSV_COLUMNS, format_csv_line
from nutch2py.jobs.row_output.row_renderer import MarkdownRenderer, OutputFormat, render_row, shown_fields
from nutch2py.jobs.stats.stats_collector import get_status_name
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import NON_NEGATIVE, JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.support.disk_errors import raise_disk_error
from nutch2py.support.reporting import print_output
from nutch2py.table import TableQuery
from nutch2py.url.keys import url_or_key

STATUS_NAMES = ("", "null", *(status.label for status in CrawlStatus))


@dataclass(frozen=True, kw_only=True)
class DumpParameters(JobParameters):
    """Parameters of a dump.

    Attributes:
        regex: Pattern that the whole URL must match.
        output_format: text, json or csv.
        status: Name of the status that rows must have, "" for any.
        retry: Minimum number of failed fetches.
        sample: Approximate part of the rows, always the same ones.
        markdown: Show the main text as Markdown.
        sections: Optional parts of a row to show.
    """

    regex: str = ".*"
    output_format: OutputFormat = "text"
    status: str = ""
    retry: int = 0
    sample: float = 1.0
    ranges: ClassVar = {"retry": NON_NEGATIVE, "sample": NumberRange(0.0, 1.0, integer=False)}
    markdown: bool = False
    sections: dict[str, bool] = field(default_factory=dict)


class DumpJob(TableJob[DumpParameters]):
    """Maps rows to output lines."""

    reduce_steps = 0
    writes_text = True

    def prepare(self) -> None:
        """Read the parameters."""
        self.regex = re.compile(self.parameters.regex, re.DOTALL)
        self.markdown = MarkdownRenderer(self.conf) if self.parameters.markdown else None
        self.fields = shown_fields(self.parameters.sections, self.markdown)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the selected rows as lines."""
        parameters = self.parameters
        if parameters.output_format == "csv":
            yield "", format_csv_line(CSV_COLUMNS).encode()
        with closing(self.markdown) if self.markdown else nullcontext():
            for key, page in pages:
                url = url_or_key(key)
                if not self._is_selected(key, page) or not self.regex.fullmatch(url):
                    continue
                text = render_row(
                    parameters.output_format, key, url, page, parameters.sections, self.markdown, shown_key=key
                )
                if parameters.output_format == "text":
                    text = f"{url}\t{text}"
                yield "", text.encode("utf-8", "surrogateescape")
                self.count("WebTableReader", "dumped")

    def _is_selected(self, key: str, page: WebPage) -> bool:
        parameters = self.parameters
        if parameters.sample < 1.0 and crc32(key.encode("utf-8", "surrogateescape")) >= parameters.sample * 2**32:
            return False
        return page.retries_since_fetch >= parameters.retry and parameters.status in ("", get_status_name(page.status))


def dump_table(conf: Configuration, output_dir: Path, parameters: DumpParameters) -> int:
    """Write the selected rows into ``output_dir`` as part files."""
    with open_job(conf, READ) as tables:
        store = tables.store
    try:
        re.compile(parameters.regex)
    except re.error as error:
        raise UsageError(f"-regex {parameters.regex} is not a regular expression: {error}") from error
    if parameters.status not in STATUS_NAMES:
        raise UsageError(f"-status {parameters.status} is not one of {', '.join(filter(None, STATUS_NAMES))}")
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        is_used = any(output_dir.iterdir())
    except FileExistsError:
        is_used = True
    except OSError as error:
        raise_disk_error(error, output_dir, "name another folder")
        raise InputError(
            f"cannot write into {output_dir}: {error.strerror}: name a folder that can be created"
        ) from error
    if is_used:
        raise InputError(f"{output_dir} exists already: name a folder that does not")
    print_output("WebTable dump: starting")
    query = TableQuery(shown_fields(parameters.sections, None))
    splits = range_splits(store, query, map_task_count(conf))
    rows = store.row_estimate()
    try:
        with open_job(conf, make_reader_scope("readdb")):
            result = run_job(
                DumpJob, conf, splits, parameters, title="WebTable dump", expected_rows=rows, output_dir=output_dir
            )
    except BaseException:  # a partial dump looks complete, and blocks the next one
        shutil.rmtree(output_dir, ignore_errors=True)
        raise
    print_output(f"WebTable dump: {result.count('WebTableReader', 'dumped')} rows")
    print_output("WebTable dump: done")
    return 0
