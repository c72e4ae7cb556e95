"""Checks and salvages a table by reading its LMDB files page by page, without LMDB."""

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
    """Yield every row of a table, with references in place of contents; report problems. See EmbeddedStore.check.

    Checked are: every used page and its nodes; that no page is used twice or listed as free; the order and number of
    keys; every checksum; that each reference has its content. The names of databases are read before LMDB opens the
    file.
    """
    problems: list[str] = []
    for name in ("meta", "content"):
        with _report_damage(f"{name}/data.mdb", problems.append):
            check_complete(path / name / "data.mdb")
            if name == "meta":
                with _open_current(path / name) as file:
                    file.databases(_prefix_reports("meta/data.mdb", problems.append))
    if problems:
        for text in problems:
            report(text)
        return
    with get_files().snapshot() as (meta, content):
        numbers: set[bytes] = set()
        report_content = _prefix_reports("content/data.mdb", report)
        for number, stored in content.entries(content.meta.main_tree, report_content):
            numbers.add(number)
            try:
                decompress(stored)
            except DamagedCellsError as error:
                report_content(f"content {int.from_bytes(number)}: {error}")
        _check_free_pages(content, report_content)
        report_meta = _prefix_reports("meta/data.mdb", report)
        trees = meta.databases(report_meta)
        for own in (STATE_DATABASE, GARBAGE_DATABASE, SAMPLE_DATABASE, DUE_DATABASE, STATISTICS_DATABASE):
            if own in trees:
                for _ in meta.entries(trees[own], _prefix_reports(own.decode(), report_meta)):
                    pass
            elif own not in (DUE_DATABASE, STATISTICS_DATABASE):  # which can be rebuilt from the rows
                report_meta(f"{own.decode()} is missing")
        yield from _join_families(
            meta, trees, report_meta, lambda number: None if number in numbers else _raise_damaged("it is missing")
        )
        _check_free_pages(meta, report_meta)


def salvage_table(path: Path, report: ProblemReporter) -> RowIterator:
    """Yield the readable cells of each row in key order, including contents; see EmbeddedStore.salvage."""
    report_meta = _prefix_reports("meta/data.mdb", report)
    with _report_damage("meta/data.mdb", report), _open_current(path / "meta") as meta:
        trees = meta.databases(report_meta)
        if STATE_DATABASE not in trees:
            report_meta(f"{STATE_DATABASE.decode()} is missing")
        try:
            contents: PageFile | None = _open_current(path / "content")
        except PermissionError:
            raise
        except (DamagedFileError, OSError) as error:
            report(f"content/data.mdb: {error}: no content can be read")
            contents = None

        def read(number: bytes) -> bytes:
            stored = contents.find_value(contents.meta.main_tree, number) if contents is not None else None
            return decompress(stored) if stored is not None else _raise_damaged("it is missing")

        try:
            yield from _join_families(meta, trees, report_meta, read)
        finally:
            if contents is not None:
                contents.close()


def _join_families(
    meta: PageFile, trees: dict[bytes, PageTree], report: ProblemReporter, read: Callable[[bytes], bytes | None]
) -> RowIterator:
    """Join the families by key. ``read`` returns the content with a number, or None to keep the reference."""
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
        used_and_free = file.pages_in_use(file.free_pages())
    except DamagedFileError as error:
        report(str(error))
        return
    if used_and_free:
        report(f"page {min(used_and_free)} is in use, and listed as free")


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
    except PermissionError:  # not damage
        raise
    except (DamagedFileError, OSError) as error:
        report(f"{name}: {error}")


def _prefix_reports(name: str, report: ProblemReporter) -> ProblemReporter:
    return lambda text: report(f"{name}: {text}")


def _raise_damaged(text: str) -> bytes:
    raise DamagedCellsError(text)
