"""export: writes selected pages and columns as files for other programs.

Tasks write JSON lines on every runner; the driver turns them into the files of the format, a part after the other. The
file ``export.json`` comes last: without it an export is not complete. It says what the export holds, and since when the
next one must look for changes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, StoreError, UsageError
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.jobs.export.archive_writer import ARCHIVE_COLUMNS, ARCHIVE_FORMATS, ArchiveWriter, has_response
from nutch2py.jobs.export.arrow_tables import require_pyarrow
from nutch2py.jobs.export.export_columns import (
    CSV_DEFAULT_COLUMNS,
    DEFAULT_COLUMNS,
    EXPORT_COLUMNS,
    Column,
    ExportedPage,
    format_export_time,
    select_columns,
)
from nutch2py.jobs.export.export_formats import EXPORT_FORMATS, MARKDOWN_COLUMNS, remove_output, write_part
from nutch2py.jobs.export.row_conditions import RowCondition, parse_time
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import READ, make_reader_scope
from nutch2py.jobs.monitoring.batch_report import list_open_batches
from nutch2py.jobs.row_output.row_renderer import MarkdownRenderer
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import NON_NEGATIVE, JobParameters
from nutch2py.mapreduce.table_job import ROWS_UNREADABLE_COUNTER, KeyValuePair, Pages, TableJob
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import FETCHED_STATUSES, WebPage
from nutch2py.support.atomic_files import atomic_write
from nutch2py.support.clock import now_ms
from nutch2py.support.disk_errors import raise_disk_error
from nutch2py.support.reporting import log_line
from nutch2py.table import TableQuery, host_range

MANIFEST_NAME = "export.json"
"""The file that completes an export."""
_TIME_FIELDS: frozenset[RecordField] = frozenset(EXPORT_COLUMNS["fetch_time"].fields)
_COUNTER_GROUP = "export"
_TASKS_NAME = ".tasks"
"""Folder for temporary files in the folder of the export; the export that creates it owns both."""


@dataclass(frozen=True, kw_only=True)
class ExportParameters(JobParameters):
    """Selection of an export.

    Attributes:
        columns: Names of the columns, see :func:`~nutch2py.jobs.export.export_columns.select_columns`.
        conditions: Conditions that a page must meet, as texts (:class:`RowCondition`).
        all_rows: Select rows of every status instead of fetched pages.
        changed_since: Select pages that were fetched at or after this time, ms since 1970; 0: all.
        with_response: Select only rows that hold a response, for archives.
    """

    columns: tuple[str, ...] = DEFAULT_COLUMNS
    conditions: tuple[str, ...] = ()
    all_rows: bool = False
    changed_since: int = 0
    with_response: bool = False
    ranges: ClassVar = {"changed_since": NON_NEGATIVE}


@dataclass
class ExportResult:
    """Result of an export.

    Attributes:
        pages: Number of pages.
        skipped: Numbers of rows that were not exported, by reason.
        files: Number of files.
        folder: Where they are.
        next_since: Time for ``-changed-since`` of the next export, ms since 1970.
    """

    pages: int
    skipped: dict[str, int] = field(default_factory=dict)
    files: int = 0
    folder: str = ""
    next_since: int = 0


class RowExporter:
    """Selects rows and makes their values; used by tasks and by :meth:`Crawl.to_arrow`. Must be closed."""

    def __init__(self, conf: Configuration, parameters: ExportParameters) -> None:
        self._parameters = parameters
        self._columns: list[Column] = [EXPORT_COLUMNS[name] for name in parameters.columns]
        self._conditions = [RowCondition.parse(text) for text in parameters.conditions]
        self._markdown = MarkdownRenderer(conf) if "markdown" in parameters.columns else None
        used = {name for each in self._conditions for name in EXPORT_COLUMNS[each.column].fields}
        self.fields: frozenset[RecordField] = frozenset(
            {WebPage.status, WebPage.fetch_time, *used, *(name for column in self._columns for name in column.fields)}
        )
        if parameters.changed_since:
            self.fields |= _TIME_FIELDS
        if self._markdown is not None:
            self.fields |= self._markdown.fields

    def close(self) -> None:
        """Stop the parser process of the column markdown."""
        if self._markdown is not None:
            self._markdown.close()

    def export_row(self, key: str, page: WebPage) -> dict[str, object] | str:
        """Return the values of a row by column, or the reason why it is skipped."""
        parameters = self._parameters
        if not parameters.all_rows and page.status not in FETCHED_STATUSES:
            return "not_fetched"
        if parameters.changed_since and page_fetch_time(page) < parameters.changed_since:
            return "unchanged"
        row = ExportedPage.from_row(key, page, partial(self._render, key, page))
        if not all(each.is_met(row) for each in self._conditions):
            return "not_selected"
        values = {column.name: value for column in self._columns if (value := column.value(row)) is not None}
        return "no_response" if parameters.with_response and not has_response(values) else values

    def _render(self, key: str, page: WebPage) -> str | None:
        return None if self._markdown is None else self._markdown.render(key, page)


class ExportJob(TableJob[ExportParameters]):
    """Maps rows to JSON lines."""

    reduce_steps = 0
    writes_text = True

    def prepare(self) -> None:
        """Read the parameters."""
        self.exporter = RowExporter(self.conf, self.parameters)
        self.fields = self.exporter.fields

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the selected rows as lines."""
        with closing(self.exporter):
            for key, page in pages:
                row = self.exporter.export_row(key, page)
                if isinstance(row, str):
                    self.count(_COUNTER_GROUP, row)
                    continue
                self.count(_COUNTER_GROUP, "pages")
                yield "", orjson.dumps(row)


def make_parameters(
    export_format: str,
    fields: Sequence[str] = (),
    where: Sequence[str] = (),
    *,
    all_rows: bool = False,
    changed_since: str | int | Path = 0,
) -> ExportParameters:
    """Return the parameters of an export.

    Args:
        export_format: One of :data:`EXPORT_FORMATS`, or "arrow".
        fields: Names of columns, empty for those of the format.
        where: Conditions, all of which a page must meet.
        all_rows: Select rows of every status, as a condition on the status does.
        changed_since: A time in ms since 1970 or in ISO 8601, or the folder of an earlier export.

    Raises:
        UsageError: The format, a field, a condition or the time is invalid, or the format has no fields to choose.
        InputError: The folder has no complete export.
    """
    if export_format == "markdown":
        if fields:
            raise UsageError("-format markdown has the fields of its front matter: leave out -fields")
        columns: tuple[str, ...] = ("url", "url_host_name", *MARKDOWN_COLUMNS[1:])
    elif export_format in ARCHIVE_FORMATS:
        if fields:
            raise UsageError(f"-format {export_format} holds responses, which have no fields: leave out -fields")
        columns = tuple(name for name in ARCHIVE_COLUMNS if export_format == "wacz" or name not in ("title", "text"))
    elif export_format in (*EXPORT_FORMATS, "arrow"):
        columns = select_columns(fields, CSV_DEFAULT_COLUMNS if export_format == "csv" else DEFAULT_COLUMNS)
    else:
        raise UsageError(f"-format {export_format} is not one of {', '.join(EXPORT_FORMATS)}")
    if any(RowCondition.parse(text).column == "status" for text in where):
        all_rows = True
    since = changed_since if isinstance(changed_since, int) else _read_since(str(changed_since))
    return ExportParameters(
        columns=columns, conditions=tuple(where), all_rows=all_rows, changed_since=since,
        with_response=export_format in ARCHIVE_FORMATS,
    )  # fmt: skip


def _read_since(text: str) -> int:
    """Return the time that a text states, or ``next_since`` of the export in the folder that it names."""
    try:
        return max(0, parse_time(text))
    except (ValueError, OverflowError):
        pass
    path = Path(text)
    manifest = path / MANIFEST_NAME if path.is_dir() else path
    try:
        return max(0, parse_time(str(orjson.loads(manifest.read_bytes())["next_since"])))
    except FileNotFoundError:
        if path.is_dir():
            raise InputError(
                f"-changed-since {text}: the folder has no {MANIFEST_NAME}, so its export did not end: name another"
            ) from None
        raise UsageError(
            f"-changed-since {text} is neither a time such as 2026-11-24 or 2026-11-24T17:00:00Z nor the folder of an "
            "export"
        ) from None
    except OSError as error:
        raise InputError(f"-changed-since {text}: {manifest} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"-changed-since {text}: {manifest} was not written by an export ({error})") from error


def export_pages(
    conf: Configuration,
    target_dir: Path,
    export_format: str,
    parameters: ExportParameters,
    *,
    host: str = "",
    chunk_tokens: int = 0,
) -> ExportResult:
    """Write the selected pages into a folder, which must be new or empty.

    Args:
        conf: Configuration of the crawl.
        target_dir: The folder.
        export_format: One of :data:`EXPORT_FORMATS`.
        parameters: What to select, see :func:`make_parameters`.
        host: Only pages of this host.
        chunk_tokens: With markdown, write chunks of about this many tokens.

    Raises:
        InputError: The folder is in use or cannot be created.
        StoreError: The disk is full or failing.
    """
    if chunk_tokens and export_format != "markdown":
        raise UsageError("-chunk-tokens divides Markdown: add -format markdown")
    if export_format == "parquet":
        require_pyarrow("-format parquet")
    exporter = RowExporter(conf, parameters)  # reports a missing extra before anything is written
    exporter.close()
    with open_job(conf, READ) as tables:
        store = tables.store
    is_new = _create_folder(target_dir)
    temp_dir = target_dir / _TASKS_NAME
    raw_dir = temp_dir / "output"
    query = TableQuery(exporter.fields, host_range(host))
    started = now_ms()
    log_line(f"Export: starting, {export_format} in {target_dir}")
    try:
        with open_job(conf, make_reader_scope("export")):
            next_since = min(
                [started, *(batch.time for batch in list_open_batches(conf, count_rows=False, finishes_updates=False))]
            )
            result = run_job(
                ExportJob, conf, range_splits(store, query, map_task_count(conf)), parameters, title="Export",
                expected_rows=None if host else store.row_estimate(), output_dir=raw_dir,
            )  # fmt: skip
            found = ExportResult(0, result.group(_COUNTER_GROUP), folder=str(target_dir), next_since=next_since)
            found.pages = found.skipped.pop("pages", 0)
            if unreadable := result.count("table", ROWS_UNREADABLE_COUNTER):
                found.skipped["unreadable"] = unreadable
            parts = sorted(raw_dir.glob("part-*")) if raw_dir.is_dir() else []
            if export_format in ARCHIVE_FORMATS:
                found.files += _write_archive(conf, export_format, parts, target_dir, temp_dir)
            else:
                for part in parts:
                    found.files += write_part(export_format, part, target_dir, parameters.columns, chunk_tokens)
            shutil.rmtree(temp_dir, ignore_errors=True)
            _write_manifest(target_dir, export_format, parameters, found, started)
    except OSError as error:
        remove_output(target_dir, is_new=is_new)
        raise_disk_error(error, target_dir, "name another folder")
        raise StoreError(f"cannot write into {target_dir}: {error.strerror or error}") from error
    except BaseException:  # a partial export looks complete, and blocks the next one
        remove_output(target_dir, is_new=is_new)
        raise
    _log_summary(found)
    return found


def _write_archive(
    conf: Configuration, export_format: str, parts: Sequence[Path], target_dir: Path, temp_dir: Path
) -> int:
    """Write the archive of all parts, which are deleted; return the number of its files."""
    with ArchiveWriter(conf, export_format, target_dir, temp_dir) as writer:
        for part in parts:
            with part.open("rb") as lines:
                writer.add_rows(lines)
            part.unlink()
        writer.finish()
    return writer.files


def _create_folder(target_dir: Path) -> bool:
    """Create the folder, or check that it is empty; return whether it is new.

    Of two exports that start at once, one creates the folder for temporary files; the other finds the folder in use.
    """
    is_new = False
    try:
        target_dir.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            target_dir.mkdir()
            is_new = True
        is_used = any(target_dir.iterdir())
        try:
            if not is_used:
                (target_dir / _TASKS_NAME).mkdir()
        except FileExistsError:
            is_used = True
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{target_dir} is not a folder: name one that does not exist or is empty") from None
    except OSError as error:
        raise_disk_error(error, target_dir, "name another folder")
        raise InputError(
            f"cannot write into {target_dir}: {error.strerror}: name a folder that can be created"
        ) from error
    if is_used:
        raise InputError(f"{target_dir} is in use: name a folder that does not exist or is empty")
    return is_new


def _write_manifest(
    target_dir: Path, export_format: str, parameters: ExportParameters, result: ExportResult, started: int
) -> None:
    values = {
        "format": export_format,
        "started": format_export_time(started),
        "next_since": format_export_time(result.next_since),
        "pages": result.pages,
        "skipped": result.skipped,
        "files": result.files,
        **asdict(parameters),
        "changed_since": format_export_time(parameters.changed_since),
    }
    with atomic_write(target_dir / MANIFEST_NAME) as file:
        file.write(orjson.dumps(values, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


_REASONS = {
    "not_fetched": "not fetched (-all has them)",
    "unchanged": "not fetched since",
    "not_selected": "without a match for -where",
    "no_response": "without a stored response",
    "unreadable": "unreadable (checktable lists them)",
}


def _log_summary(result: ExportResult) -> None:
    skipped = ", ".join(f"{count} {_REASONS.get(name, name)}" for name, count in sorted(result.skipped.items()))
    log_line(
        f"Export: {result.pages} {'page' if result.pages == 1 else 'pages'} in {result.files} "
        f"{'file' if result.files == 1 else 'files'} in {result.folder}" + (f"; skipped: {skipped}" if skipped else "")
    )
