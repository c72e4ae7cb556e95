"""Looking through a table page by page, without LMDB: to find out whether it is sound, and to save what can be read."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from nutch2py.table.embedded.content import decompress, number_of
from nutch2py.table.embedded.files import GARBAGE, SAMPLE, STATE, TableFiles
from nutch2py.table.embedded.keeping import DUE, FIGURES
from nutch2py.table.embedded.packing import DamagedCellsError, cell_times, expand
from nutch2py.table.embedded.pages import DamagedFileError, Note, PageFile, Tree, check_whole
from nutch2py.table.store import CellTimes, RowCells

Rows = Iterator[tuple[str, RowCells]]


def check(folder: Path, live: Callable[[], TableFiles], note: Note) -> Rows:
    """Yield every row of a table (contents are checked, and stand for themselves as references); see EmbeddedStore.

    Looked at: every page that is in use and every node in it; that no page is used twice, or is listed as free; the
    order and the number of keys; every checksum; that each reference has its content. The names of databases are read
    before LMDB touches the file.
    """
    before: list[str] = []
    for name in ("meta", "content"):
        with _noting(f"{name}/data.mdb", before.append):
            check_whole(folder / name / "data.mdb")
            if name == "meta":
                with _opened(folder / name) as file:
                    file.databases(_prefixed("meta/data.mdb", before.append))
    if before:
        for text in before:
            note(text)
        return
    with live().snapshot() as (meta, content):
        numbers: set[bytes] = set()
        tell = _prefixed("content/data.mdb", note)
        for number, stored in content.entries(content.meta.main, tell):
            numbers.add(number)
            try:
                decompress(stored)
            except DamagedCellsError as error:
                tell(f"content {int.from_bytes(number)}: {error}")
        _check_free(content, tell)
        tell = _prefixed("meta/data.mdb", note)
        trees = meta.databases(tell)
        for own in (STATE, GARBAGE, SAMPLE, DUE, FIGURES):
            if own in trees:
                for _ in meta.entries(trees[own], _prefixed(own.decode(), tell)):
                    pass
            elif own not in (DUE, FIGURES):  # which can be made of the rows
                tell(f"{own.decode()} is missing")
        yield from _rows(meta, trees, tell, lambda number: None if number in numbers else _fail("it is not there"))
        _check_free(meta, tell)


def salvage(folder: Path, note: Note) -> Rows:
    """Yield what can be read of each row, in key order, contents included; see EmbeddedStore."""
    tell = _prefixed("meta/data.mdb", note)
    with _noting("meta/data.mdb", note), _opened(folder / "meta") as meta:
        trees = meta.databases(tell)
        if STATE not in trees:
            tell("it has lost what it says of itself")
        try:
            contents: PageFile | None = _opened(folder / "content")
        except PermissionError:
            raise
        except (DamagedFileError, OSError) as error:
            note(f"content/data.mdb: {error}: no content can be read")
            contents = None

        def read(number: bytes) -> bytes:
            stored = contents.first_value(contents.meta.main, number) if contents is not None else None
            return decompress(stored) if stored is not None else _fail("it is not there")

        try:
            yield from _rows(meta, trees, tell, read)
        finally:
            if contents is not None:
                contents.close()


def _rows(meta: PageFile, trees: dict[bytes, Tree], note: Note, read: Callable[[bytes], bytes | None]) -> Rows:
    """Join the families by key. ``read`` gives a content by its number, None to leave its reference in its place."""
    names = sorted(name for name in trees if not name.startswith(b":"))
    runs = [_family(meta, name, trees[name], _prefixed(name.decode("utf-8", "replace"), note)) for name in names]
    for key, parts in groupby(heapq.merge(*runs, key=itemgetter(0, 1)), key=itemgetter(0)):
        cells: RowCells = {}
        for _, name, packed in parts:
            shown = f"row {key.decode('utf-8', 'replace')}"
            try:
                found = cell_times(packed)
            except DamagedCellsError as error:
                note(f"{shown}: {name.decode('utf-8', 'replace')}: {error}")
                continue
            family, colon, _ = name.partition(b":")
            if colon:
                found = _with_contents(found, read, f"{shown}: its content", note)
            if found:
                cells[family] = {**cells.get(family, {}), **found}
        if cells:
            yield key.decode("utf-8", "replace"), cells


def _family(meta: PageFile, name: bytes, tree: Tree, note: Note) -> Iterator[tuple[bytes, bytes, bytes]]:
    for place, value in meta.entries(tree, note):
        try:
            for key, packed in expand({place: value}).items():
                yield key, name, packed
        except DamagedCellsError as error:
            note(f"rows {place[:80].decode('utf-8', 'replace')}…: {error}")


def _with_contents(found: CellTimes, read: Callable[[bytes], bytes | None], shown: str, note: Note) -> CellTimes:
    cells: CellTimes = {}
    for qualifier, (cell, time) in found.items():
        try:
            value = read(number_of(cell))
        except (DamagedCellsError, DamagedFileError) as error:
            note(f"{shown}: {error}")
            continue
        cells[qualifier] = (cell if value is None else value, time)
    return cells


def _check_free(file: PageFile, note: Note) -> None:
    try:
        both = file.used(file.free_pages())
    except DamagedFileError as error:
        note(str(error))
        return
    if both:
        note(f"page {min(both)} is in use, and listed as free")


def _opened(folder: Path) -> PageFile:
    file = PageFile(folder / "data.mdb")
    try:
        file.use(file.newest())
    except DamagedFileError:
        file.close()
        raise
    return file


@contextmanager
def _noting(name: str, note: Note) -> Iterator[None]:
    try:
        yield
    except PermissionError:  # is no damage
        raise
    except (DamagedFileError, OSError) as error:
        note(f"{name}: {error}")


def _prefixed(name: str, note: Note) -> Note:
    return lambda text: note(f"{name}: {text}")


def _fail(text: str) -> bytes:
    raise DamagedCellsError(text)
