"""readdb -dump: the rows that are asked for as part files, in the form of readdb -url, as JSON or as CSV."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from zlib import crc32

from nutch2py.conf import Configuration
from nutch2py.disk import disk_trouble
from nutch2py.errors import InputError, StoreError, UsageError
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.readdb_markdown import Form, MarkdownReader, in_form, shown_fields
from nutch2py.jobs.row_forms import COLUMNS, csv_line
from nutch2py.jobs.snapshot import status_name
from nutch2py.jobs.works import READ, reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import NUMBER, JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.ranges import Range
from nutch2py.reporting import say
from nutch2py.table import Query
from nutch2py.url.keys import name_of_key
from nutch2py.webpage import CrawlStatus, WebPage

STATUS_NAMES = ("", "null", *(status.label for status in CrawlStatus))


@dataclass(frozen=True, kw_only=True)
class DumpParameters(JobParameters):
    """``regex``: URLs that match it whole; ``shown``, ``markdown``: what to show of them beside the rest.

    ``form``: text, JSON or CSV. ``status``: only rows of it, by its name; ``retry``: only those that failed as often;
    ``sample``: about this part of the rows, always the same ones.
    """

    regex: str = ".*"
    form: Form = "text"
    status: str = ""
    retry: int = 0
    sample: float = 1.0
    ranges: ClassVar = {"retry": NUMBER, "sample": Range(0.0, 1.0, whole=False)}
    markdown: bool = False
    shown: dict[str, bool] = field(default_factory=dict)


class DumpJob(TableJob[DumpParameters]):
    """Rows to text."""

    reduce_steps = 0
    puts_out_text = True

    def prepare(self) -> None:
        """Read what to show."""
        self.regex = re.compile(self.parameters.regex, re.DOTALL)
        self.markdown = MarkdownReader(self.conf) if self.parameters.markdown else None
        self.fields = shown_fields(self.parameters.shown, self.markdown)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield each row whose URL matches, as lines."""
        wanted = self.parameters
        if wanted.form == "csv":
            yield "", csv_line(COLUMNS).encode()
        with closing(self.markdown) if self.markdown else nullcontext():
            for key, page in pages:
                url = name_of_key(key)
                if not self._chosen(key, page) or not self.regex.fullmatch(url):
                    continue
                text = in_form(wanted.form, key, url, page, wanted.shown, self.markdown, name=key)
                if wanted.form == "text":
                    text = f"{url}\t{text}"
                yield "", text.encode("utf-8", "surrogateescape")
                self.count("WebTableReader", "dumped")

    def _chosen(self, key: str, page: WebPage) -> bool:
        wanted = self.parameters
        if wanted.sample < 1.0 and crc32(key.encode("utf-8", "surrogateescape")) >= wanted.sample * 2**32:
            return False
        return page.retries_since_fetch >= wanted.retry and wanted.status in ("", status_name(page.status))


def dump(conf: Configuration, folder: Path, parameters: DumpParameters) -> int:
    """Write every row that is asked for into ``folder``, as part files."""
    with begin(conf, READ) as tables:
        store = tables.store
    try:
        re.compile(parameters.regex)
    except re.error as error:
        raise UsageError(f"-regex {parameters.regex} is not a regular expression: {error}") from error
    if parameters.status not in STATUS_NAMES:
        raise UsageError(f"-status {parameters.status} is none of {', '.join(filter(None, STATUS_NAMES))}")
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
    say("WebTable dump: starting")
    query = Query(shown_fields(parameters.shown, None))
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
