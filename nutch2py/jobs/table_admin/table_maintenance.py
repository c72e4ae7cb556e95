"""Export, import, copy, check and creation of tables, and maintenance of the due index."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import InputError, PermissionDeniedError, StoreError, UsageError
from nutch2py.jobs.inject.seeds import find_seed_files, parse_seed_line
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import COPYTABLE, DUEINDEX, IMPORTTABLE, READ, make_reader_scope
from nutch2py.jobs.table_admin import due_index_job
from nutch2py.mapreduce.lock_check import CURRENT_LOCK_TOKEN
from nutch2py.records.cells import CellError
from nutch2py.records.record import Record
from nutch2py.records.webpage import DerivedRow, Host, WebPage
from nutch2py.support.reporting import log_line, print_output, warn
from nutch2py.table import TableQuery, open_store, table_name
from nutch2py.table.due_index import DueIndexMaintenance
from nutch2py.table.row_validation import validate_cell
from nutch2py.table.table_copy import copy_table
from nutch2py.table.table_export import export_rows, export_table
from nutch2py.table.table_import import BadLineCounter, ImportLimits, import_table
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers

_MAX_REPORTED = 100
"""Problems of a table that are printed; all are counted."""


class _ProblemReporter:
    """Prints the first problems of a table, and counts all."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def report(self, text: str) -> None:
        self.count += 1
        if self.count <= _MAX_REPORTED:
            print_output(f"{self.name}: {text}")
        elif self.count == _MAX_REPORTED + 1:
            print_output(f"{self.name}: … (further problems are only counted)")


def export_to_file(conf: Configuration, path: Path, salvage: bool = False) -> int:
    """Write every cell of the crawl's table to a file of JSON lines; return the number of rows.

    ``salvage``: write the readable rows of a damaged table, and print the problems.
    """
    if salvage:
        damaged = open_store(conf, WebPage)
        problems = _ProblemReporter(damaged.name)
        rows = export_rows(damaged.salvage(problems.report), path)
        log_line(f"exporttable: {rows} rows of {damaged.name} to {path}, {problems.count} problems")
        return rows
    with open_job(conf, make_reader_scope("exporttable")) as tables:
        store = tables.store
        rows = export_table(store, path)
        log_line(f"exporttable: {rows} rows of {store.name} to {path}")
        return rows


def import_from_file(conf: Configuration, path: Path) -> int:
    """Read cells from a file of JSON lines into the crawl's table; create it if necessary; return the row count."""
    try:
        path.open("rb").close()  # create no table for a missing file
    except OSError as error:
        raise InputError(f"cannot read the dump {path}: {error.strerror}: name a file of exporttable") from error
    with open_job(conf, IMPORTTABLE, creates_table=True) as tables:
        store, limits = tables.store, ImportLimits.from_conf(conf)
        bad = BadLineCounter(path, limits.max_bad_share)
        rows = import_table(store, path, limits=limits, bad_lines=bad)
        skipped_text = (
            f"; skipped: {bad.skipped_lines} lines, {bad.skipped_cells} cells"
            if bad.skipped_lines or bad.skipped_cells
            else ""
        )
        log_line(f"importtable: {rows} rows from {path} to {store.name}{skipped_text}")
        return rows


def check_tables(conf: Configuration) -> int:
    """Check every table of the crawl and print the damage; return the number of problems.

    Checks every page and checksum of the embedded store. Decodes each cell in every store: a cell that does not have
    the type of its column, as another program may have written it, is a problem, too.
    """
    problem_count = 0
    if not open_store(conf, WebPage).exists():
        raise StoreError(f"there is no table {table_name(conf, WebPage)}: correct storage.data.store or -crawlId")
    records: tuple[type[Record], ...] = (WebPage, Host, DerivedRow)
    for record in records:
        store = open_store(conf, record)
        if not store.exists():
            continue
        problems, rows, cells = _ProblemReporter(store.name), 0, 0
        try:
            for key, families in store.check(problems.report):
                rows += 1
                for family, entries in families.items():
                    cells += len(entries)
                    for qualifier, (value, _) in entries.items():
                        try:
                            validate_cell(record, family, qualifier, value)
                        except CellError as error:
                            problems.report(f"row {key}: {error}")
        except PermissionDeniedError:  # the table was not checked
            raise
        except StoreError as error:
            problems.report(str(error))
        state = f"{problems.count} problems" if problems.count else "sound"
        print_output(f"checktable: {store.name}: {rows} rows, {cells} cells: {state}")
        problem_count += problems.count
    if problem_count:
        warn("restore the table, or export the readable rows: exporttable -salvage FILE")
    return problem_count


def manage_due_index(conf: Configuration, *, check: bool = False, drop: bool = False) -> int:
    """Build, check or drop the due index and the kept statistics; print the result, return the problem count."""
    with open_job(conf, READ) as tables:
        store = tables.store
    index: DueIndexMaintenance = store.due_index()
    if drop:
        with open_job(conf, DUEINDEX if index.is_built_by_tasks else make_reader_scope("dueindex")):
            index.drop()
        log_line(f"dueindex: {store.name}: dropped")
        return 0
    if not check:
        if index.is_built_by_tasks:
            rows = due_index_job.build_due_index(conf, index)
        else:
            with open_job(conf, make_reader_scope("dueindex")):
                rows = index.rebuild()
        log_line(f"dueindex: {store.name}: {rows} rows")
        return 0
    problems = _ProblemReporter(store.name)
    check_index = partial(due_index_job.check_due_index, conf, index) if index.is_built_by_tasks else index.check
    entries = check_index(problems.report)
    state = f"{problems.count} problems" if problems.count else "sound"
    print_output(f"dueindex: {store.name}: {entries} rows: {state}")
    if problems.count:
        warn("rebuild the index: dueindex")
    return problems.count


class _KeyMapper:
    """Maps row keys to keys of the copy, and counts skipped rows."""

    def __init__(self, conf: Configuration, filter_urls: bool, normalize: bool) -> None:
        self._normalize = URLNormalizers(conf, "crawldb").normalize if normalize else str
        self._accept = URLFilters(conf).filter_link if filter_urls else str
        self._keeps_keys = not (filter_urls or normalize)
        self.skipped_rows = self.moved_rows = 0

    def map_key(self, key: str) -> str | None:
        if self._keeps_keys:
            return key
        try:
            url = self._accept(self._normalize(unreverse_url(key)) or "")
            target_conf = reverse_url(url) if url else None
        except ValueError:
            target_conf = None
        self.skipped_rows += target_conf is None
        self.moved_rows += target_conf is not None and target_conf != key
        return target_conf


def copy_to_store(conf: Configuration, target: str, *, filter_urls: bool = False, normalize: bool = False) -> int:
    """Copy every cell of the crawl's table to the table of the same name in another store; return the rows.

    ``filter_urls`` skips rows with URLs that the filters reject; ``normalize`` copies a row to its normalized URL. The
    newer of two cells wins, so tables of several stores can be copied into one.
    """
    target_conf = conf.copy()
    target_conf.set("storage.data.store", target)
    key_mapper = _KeyMapper(conf, filter_urls, normalize)
    with open_job(conf, READ) as tables, open_job(target_conf, COPYTABLE, creates_table=True) as others:
        source = tables.store
        if CURRENT_LOCK_TOKEN.get() in {
            holder.token for holder in tables.batch_lists.read_lock_holders()
        }:  # the same store, possibly under another address
            raise UsageError(f"{redact_address(target)} holds {source.name} itself: name another store to copy it to")
        rows = copy_table(source, others.store, map_key=key_mapper.map_key)
        log_line(f"copytable: {rows} rows of {source.name} from {source.location} to {redact_address(target)}")
        if key_mapper.skipped_rows or key_mapper.moved_rows:
            log_line(f"copytable: {key_mapper.skipped_rows} rows skipped, {key_mapper.moved_rows} moved to another URL")
        return rows


def create_table(
    conf: Configuration, region_count: int, seeds: str | None, sample: str | None, keys_file: str | None
) -> int:
    """Create the crawl's table; on HBase with regions split at given keys, or into ``region_count`` parts by a sample.

    ``keys_file`` has one row key or URL per line. ``seeds`` is a seed file or folder, ``sample`` another store with the
    crawl's table; their keys are split into parts of similar size.
    """
    store = open_store(conf, WebPage)
    keys = split_keys(conf, region_count, seeds, sample, keys_file)
    if keys:
        store.create_with_splits([key.encode() for key in keys])
    else:
        store.create()
    log_line(f"createtable: {store.name} at {store.location}, {len(keys) + 1} region{'s' if keys else ''}")
    return 0


def split_keys(
    conf: Configuration, region_count: int, seeds: str | None, sample: str | None, keys_file: str | None
) -> list[str]:
    """Return the start keys of all regions but the first; none without any of the options."""
    if keys_file is not None:
        return sorted({key for line in _read_lines(Path(keys_file)) if (key := _to_row_key(line.strip()))})
    if region_count < 2:
        return []
    if sample is not None:
        ranges = open_store(conf, WebPage, location=sample).key_ranges(TableQuery(None), region_count)
        return [key_range.start for key_range in ranges if key_range.start]
    if seeds is None:
        raise UsageError("-splits needs keys to cut: give -seeds FILE, -sample STORE or -keys FILE")
    lines = (line for file in find_seed_files(Path(seeds)) for line in _read_lines(file))
    keys = sorted({_to_row_key(seed.url) for line in lines for seed in parse_seed_line(line)} - {""})
    if len(keys) < region_count:
        raise UsageError(f"{seeds} has {len(keys)} URLs, too few for {region_count} regions: lower -splits")
    return [keys[len(keys) * part // region_count] for part in range(1, region_count)]


def _to_row_key(text: str) -> str:
    """Return the row key of a URL, or other text unchanged; "" for an invalid URL."""
    if "://" not in text:
        return text
    try:
        return reverse_url(text)
    except ValueError:
        return ""


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}: check that it exists and is readable") from error
