"""Tables as a whole: to a file, from a file, to another store."""

from __future__ import annotations

from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.errors import InputError, UsageError
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.seeds import parse_seed_line, seed_files
from nutch2py.jobs.works import IMPORTTABLE, READ
from nutch2py.reporting import say
from nutch2py.table import Query, open_store
from nutch2py.table.dump import copy_table, export_table, import_table
from nutch2py.url.keys import reverse_url
from nutch2py.webpage import WebPage


def export_to(conf: Configuration, path: Path) -> int:
    """Write every cell of the crawl's table to a file of JSON lines; return the number of rows."""
    with begin(conf, READ) as tables:
        store = tables.store
        rows = export_table(store, path)
        say(f"exporttable: {rows} rows of {store.name} to {path}")
        return rows


def import_from(conf: Configuration, path: Path) -> int:
    """Read cells from a file of JSON lines into the crawl's table, which is made if need be; return the rows."""
    with begin(conf, IMPORTTABLE, makes=True) as tables:
        store = tables.store
        rows = import_table(store, path)
        say(f"importtable: {rows} rows from {path} to {store.name}")
        return rows


def copy_to(conf: Configuration, target: str) -> int:
    """Copy every cell of the crawl's table to the table of the same name in another store; return the rows."""
    with begin(conf, READ) as tables:
        source = tables.store
        store = open_store(conf, WebPage, location=target)
        store.create()
        rows = copy_table(source, store)
        say(f"copytable: {rows} rows of {source.name} from {source.location} to {target}")
        return rows


def create_table(
    conf: Configuration, regions: int, seeds: str | None, sample: str | None, keys_file: str | None
) -> int:
    """Make the crawl's table; on HBase with regions split by given keys, or in ``regions`` parts by a sample.

    ``keys_file`` has a row key or URL a line; ``seeds`` is a seed file or folder, ``sample`` another store that has the
    crawl's table: their keys are cut into parts of like size.
    """
    store = open_store(conf, WebPage)
    keys = _split_keys(conf, regions, seeds, sample, keys_file)
    if keys:
        store.create_split([key.encode() for key in keys])
    else:
        store.create()
    say(f"createtable: {store.name} at {store.location}, {len(keys) + 1} region{'s' if keys else ''}")
    return 0


def _split_keys(
    conf: Configuration, regions: int, seeds: str | None, sample: str | None, keys_file: str | None
) -> list[str]:
    """Return the keys at which regions begin, the first region's left out; none without any of the options."""
    if keys_file is not None:
        return sorted({key for line in _lines(Path(keys_file)) if (key := _row_key(line.strip()))})
    if regions < 2:
        return []
    if sample is not None:
        ranges = open_store(conf, WebPage, location=sample).key_ranges(Query(None), regions)
        return [key_range.start for key_range in ranges if key_range.start]
    if seeds is None:
        raise UsageError("-splits needs keys to cut: give -seeds FILE, -sample STORE or -keys FILE")
    lines = (line for file in seed_files(Path(seeds)) for line in _lines(file))
    keys = sorted({_row_key(seed.url) for line in lines for seed in parse_seed_line(line)} - {""})
    if len(keys) < regions:
        raise UsageError(f"{seeds} has {len(keys)} URLs, too few for {regions} regions: lower -splits")
    return [keys[len(keys) * part // regions] for part in range(1, regions)]


def _row_key(text: str) -> str:
    """Return the row key of a URL, any other text as it is; empty for what looks like a URL and is none."""
    if "://" not in text:
        return text
    try:
        return reverse_url(text)
    except ValueError:
        return ""


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}: check that it exists and may be read") from error
