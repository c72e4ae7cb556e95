"""Looking through a table page by page, without LMDB: to find out whether it is sound, and to save what can be read."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from nutch2py.table.data_store import CellTimes, RowCells
from nutch2py.table.embedded.blobs import content_number, decompress
from nutch2py.table.embedded.embedded_due_update import DUE_DATABASE, STATISTICS_DATABASE
from nutch2py.table.embedded.storage.lmdb_pages import (
    DamagedFileError,
    PageFile,
    PageTree,
    ProblemReporter,
    check_complete,
)
from nutch2py.table.embedded.storage.packing import DamagedCellsError, expand_buckets, unpack_cells
from nutch2py.table.embedded.storage.table_files import GARBAGE_DATABASE, SAMPLE_DATABASE, STATE_DATABASE, TableFiles

RowIterator = Iterator[tuple[str, RowCells]]


def check_table(path: Path, get_files: Callable[[], TableFiles], report: ProblemReporter) -> RowIterator:
    """Yield every row of a table (contents are checked, and stand for themselves as references); see EmbeddedStore.

    Looked at: every page that is in use and every node in it; that no page is used twice, or is listed as free; the
    order and the number of keys; every checksum; that each reference has its content. The names of databases are read
    before LMDB touches the file.
    """
    before: list[str] = []
    for name in ("meta", "content"):
        with _report_damage(f"{name}/data.mdb", before.append):
            check_complete(path / name / "data.mdb")
            if name == "meta":
                with _open_current(path / name) as file:
                    file.databases(_prefix_reports("meta/data.mdb", before.append))
    if before:
        for text in before:
            report(text)
        return
    with get_files().snapshot() as (meta, content):
        numbers: set[bytes] = set()
        tell = _prefix_reports("content/data.mdb", report)
        for number, stored in content.entries(content.meta.main_tree, tell):
            numbers.add(number)
            try:
                decompress(stored)
            except DamagedCellsError as error:
                tell(f"content {int.from_bytes(number)}: {error}")
        _check_free_pages(content, tell)
        tell = _prefix_reports("meta/data.mdb", report)
        trees = meta.databases(tell)
        for own in (STATE_DATABASE, GARBAGE_DATABASE, SAMPLE_DATABASE, DUE_DATABASE, STATISTICS_DATABASE):
            if own in trees:
                for _ in meta.entries(trees[own], _prefix_reports(own.decode(), tell)):
                    pass
            elif own not in (DUE_DATABASE, STATISTICS_DATABASE):  # which can be made of the rows
                tell(f"{own.decode()} is missing")
        yield from _join_families(
            meta, trees, tell, lambda number: None if number in numbers else _raise_damaged("it is not there")
        )
        _check_free_pages(meta, tell)


def salvage_table(path: Path, report: ProblemReporter) -> RowIterator:
    """Yield what can be read of each row, in key order, contents included; see EmbeddedStore."""
    tell = _prefix_reports("meta/data.mdb", report)
    with _report_damage("meta/data.mdb", report), _open_current(path / "meta") as meta:
        trees = meta.databases(tell)
        if STATE_DATABASE not in trees:
            tell("it has lost what it says of itself")
        try:
            contents: PageFile | None = _open_current(path / "content")
        except PermissionError:
            raise
        except (DamagedFileError, OSError) as error:
            report(f"content/data.mdb: {error}: no content can be read")
            contents = None

        def read(number: bytes) -> bytes:
            stored = contents.find_value(contents.meta.main_tree, number) if contents is not None else None
            return decompress(stored) if stored is not None else _raise_damaged("it is not there")

        try:
            yield from _join_families(meta, trees, tell, read)
        finally:
            if contents is not None:
                contents.close()


def _join_families(
    meta: PageFile, trees: dict[bytes, PageTree], report: ProblemReporter, read: Callable[[bytes], bytes | None]
) -> RowIterator:
    """Join the families by key. ``read`` gives a content by its number, None to leave its reference in its place."""
    names = sorted(name for name in trees if not name.startswith(b":"))
    runs = [
        _read_family(meta, name, trees[name], _prefix_reports(name.decode("utf-8", "replace"), report))
        for name in names
    ]
    for key, parts in groupby(heapq.merge(*runs, key=itemgetter(0, 1)), key=itemgetter(0)):
        cells: RowCells = {}
        for _, name, packed in parts:
            shown = f"row {key.decode('utf-8', 'replace')}"
            try:
                found = unpack_cells(packed)
            except DamagedCellsError as error:
                report(f"{shown}: {name.decode('utf-8', 'replace')}: {error}")
                continue
            family, colon, _ = name.partition(b":")
            if colon:
                found = _read_contents(found, read, f"{shown}: its content", report)
            if found:
                cells[family] = {**cells.get(family, {}), **found}
        if cells:
            yield key.decode("utf-8", "replace"), cells


def _read_family(
    meta: PageFile, name: bytes, tree: PageTree, report: ProblemReporter
) -> Iterator[tuple[bytes, bytes, bytes]]:
    for place, value in meta.entries(tree, report):
        try:
            for key, packed in expand_buckets({place: value}).items():
                yield key, name, packed
        except DamagedCellsError as error:
            report(f"rows {place[:80].decode('utf-8', 'replace')}…: {error}")


def _read_contents(
    found: CellTimes, read: Callable[[bytes], bytes | None], shown: str, report: ProblemReporter
) -> CellTimes:
    cells: CellTimes = {}
    for qualifier, (cell, time) in found.items():
        try:
            value = read(content_number(cell))
        except (DamagedCellsError, DamagedFileError) as error:
            report(f"{shown}: {error}")
            continue
        cells[qualifier] = (cell if value is None else value, time)
    return cells


def _check_free_pages(file: PageFile, report: ProblemReporter) -> None:
    try:
        both = file.pages_in_use(file.free_pages())
    except DamagedFileError as error:
        report(str(error))
        return
    if both:
        report(f"page {min(both)} is in use, and listed as free")


def _open_current(path: Path) -> PageFile:
    file = PageFile(path / "data.mdb")
    try:
        file.select_meta(file.current_meta())
    except DamagedFileError:
        file.close()
        raise
    return file


@contextmanager
def _report_damage(name: str, report: ProblemReporter) -> Iterator[None]:
    try:
        yield
    except PermissionError:  # is no damage
        raise
    except (DamagedFileError, OSError) as error:
        report(f"{name}: {error}")


def _prefix_reports(name: str, report: ProblemReporter) -> ProblemReporter:
    return lambda text: report(f"{name}: {text}")


def _raise_damaged(text: str) -> bytes:
    raise DamagedCellsError(text)
