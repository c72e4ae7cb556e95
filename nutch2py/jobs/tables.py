"""Tables as a whole: to a file, from a file, to another store."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from nutch2py.cells import CellError
from nutch2py.conf import Configuration
from nutch2py.errors import InputError, NoRightError, StoreError, UsageError
from nutch2py.jobs import due_building
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.seeds import parse_seed_line, seed_files
from nutch2py.jobs.works import COPYTABLE, DUEINDEX, IMPORTTABLE, READ, reader
from nutch2py.mapreduce.held import HOLDING
from nutch2py.record import Record
from nutch2py.reporting import say, tell, warn
from nutch2py.table import Query, open_store, table_name
from nutch2py.table.dump import copy_table, export_rows, export_table, import_table
from nutch2py.table.importing import BadLines, ImportRules
from nutch2py.table.unreadable import check_cell
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.url_filters import URLFilters
from nutch2py.url.url_normalizers import URLNormalizers
from nutch2py.webpage import BatchEntry, Host, WebPage

_TOLD = 100
"""Troubles of a table that are named; all are counted."""


class _Troubles:
    """Says what is wrong with a table, the first hundred, and counts all."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def note(self, text: str) -> None:
        self.count += 1
        if self.count <= _TOLD:
            say(f"{self.name}: {text}")
        elif self.count == _TOLD + 1:
            say(f"{self.name}: … (only counted from here on)")


def export_to(conf: Configuration, path: Path, salvage: bool = False) -> int:
    """Write every cell of the crawl's table to a file of JSON lines; return the number of rows.

    ``salvage``: the table is damaged; write what can be read of it, and say what cannot.
    """
    if salvage:
        damaged = open_store(conf, WebPage)
        troubles = _Troubles(damaged.name)
        rows = export_rows(damaged.salvage(troubles.note), path)
        tell(f"exporttable: {rows} rows of {damaged.name} to {path}, {troubles.count} troubles")
        return rows
    with begin(conf, reader("exporttable")) as tables:
        store = tables.store
        rows = export_table(store, path)
        tell(f"exporttable: {rows} rows of {store.name} to {path}")
        return rows


def import_from(conf: Configuration, path: Path) -> int:
    """Read cells from a file of JSON lines into the crawl's table, which is made if need be; return the rows."""
    try:
        path.open("rb").close()  # no table is made for a file that is not there
    except OSError as error:
        raise InputError(f"cannot read the dump {path}: {error.strerror}: name a file of exporttable") from error
    with begin(conf, IMPORTTABLE, makes=True) as tables:
        store, rules = tables.store, ImportRules.of(conf)
        bad = BadLines(path, rules.share)
        rows = import_table(store, path, rules=rules, bad=bad)
        left_out = f"; left out: {bad.lines} lines, {bad.cells} cells" if bad.lines or bad.cells else ""
        tell(f"importtable: {rows} rows from {path} to {store.name}{left_out}")
        return rows


def check_tables(conf: Configuration) -> int:
    """Look through every table of the crawl, and say what is damaged; return the number of troubles.

    Of the embedded store every page and checksum is looked at. In every store each cell is decoded: one that is not of
    its column's type, as another program may have written it, counts as a trouble, too.
    """
    found = 0
    if not open_store(conf, WebPage).exists():
        raise StoreError(f"there is no table {table_name(conf, WebPage)}: correct storage.data.store or -crawlId")
    records: tuple[type[Record], ...] = (WebPage, Host, BatchEntry)
    for record in records:
        store = open_store(conf, record)
        if not store.exists():
            continue
        troubles, rows, cells = _Troubles(store.name), 0, 0
        try:
            for key, families in store.check(troubles.note):
                rows += 1
                for family, entries in families.items():
                    cells += len(entries)
                    for qualifier, (value, _) in entries.items():
                        try:
                            check_cell(record, family, qualifier, value)
                        except CellError as error:
                            troubles.note(f"row {key}: {error}")
        except NoRightError:  # nothing is known of the table then
            raise
        except StoreError as error:
            troubles.note(str(error))
        state = f"{troubles.count} troubles" if troubles.count else "sound"
        say(f"checktable: {store.name}: {rows} rows, {cells} cells: {state}")
        found += troubles.count
    if found:
        warn("restore the table, or save what can be read: exporttable -salvage FILE")
    return found


def due_index(conf: Configuration, *, check: bool = False, drop: bool = False) -> int:
    """Make, check or drop the index of what is due, and the figures; say what was done, return how many troubles."""
    with begin(conf, READ) as tables:
        store = tables.store
    index = store.due_index()
    if drop:
        with begin(conf, DUEINDEX if index.by_tasks else reader("dueindex")):
            index.drop()
        tell(f"dueindex: {store.name}: dropped")
        return 0
    if not check:
        if index.by_tasks:
            rows = due_building.build(conf, index)
        else:
            with begin(conf, reader("dueindex")):
                rows = index.build()
        tell(f"dueindex: {store.name}: {rows} rows")
        return 0
    troubles = _Troubles(store.name)
    look = partial(due_building.check, conf, index) if index.by_tasks else index.check
    entries = look(troubles.note)
    state = f"{troubles.count} troubles" if troubles.count else "sound"
    say(f"dueindex: {store.name}: {entries} rows: {state}")
    if troubles.count:
        warn("make the index anew: dueindex")
    return troubles.count


class _Kept:
    """Gives the key that a row gets in a copy, and counts what is left out."""

    def __init__(self, conf: Configuration, filter_urls: bool, normalize: bool) -> None:
        self._normalize = URLNormalizers(conf, "crawldb").normalize if normalize else str
        self._accept = URLFilters(conf).accept if filter_urls else str
        self._plain = not (filter_urls or normalize)
        self.left_out = self.moved = 0

    def key(self, key: str) -> str | None:
        if self._plain:
            return key
        try:
            url = self._accept(self._normalize(unreverse_url(key)) or "")
            there = reverse_url(url) if url else None
        except ValueError:
            there = None
        self.left_out += there is None
        self.moved += there is not None and there != key
        return there


def copy_to(conf: Configuration, target: str, *, filter_urls: bool = False, normalize: bool = False) -> int:
    """Copy every cell of the crawl's table to the table of the same name in another store; return the rows.

    ``filter_urls``, ``normalize``: only rows whose URL the filters accept, and to the row of its normal form. Of two
    cells the newer one stays, so tables of several stores can be copied into one.
    """
    there = conf.copy()
    there.set("storage.data.store", target)
    kept = _Kept(conf, filter_urls, normalize)
    with begin(conf, READ) as tables, begin(there, COPYTABLE, makes=True) as others:
        source = tables.store
        if HOLDING.get() in {holder.token for holder in tables.lists.holders()}:  # whatever their addresses are
            raise UsageError(f"{target} holds {source.name} itself: name another store to copy it to")
        rows = copy_table(source, others.store, key_of=kept.key)
        tell(f"copytable: {rows} rows of {source.name} from {source.location} to {target}")
        if kept.left_out or kept.moved:
            tell(f"copytable: {kept.left_out} rows left out, {kept.moved} to the row of another URL")
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
    tell(f"createtable: {store.name} at {store.location}, {len(keys) + 1} region{'s' if keys else ''}")
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
