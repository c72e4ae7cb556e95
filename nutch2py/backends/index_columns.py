"""Other scores for documents of the embedded index, without their texts: columns of its segments are made anew.

A segment of tantivy never changes, and no column of it can be updated. But its columns lie in a file of their own,
``<segment>.fast``, and what is in them can be read back: numbers as such, words of facets by their postings. So a
scratch index of the same documents in the same order, with nothing but columns, has the very file that the segment
would have had. The segment with that file gets a new name, under which all else of it is linked, and ``meta.json``
names it instead: the rename of that file is the commit, of all segments at once. Before it nothing has changed; behind
it readers see the scores with their next reload, as any commit, and tantivy's own collector takes the old files.

What is relied on here of tantivy's files is in :data:`_NOT_COLUMNS` and :func:`_renamed`, and held by
tests/indexer/test_index_scores.py.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.backends.index_folder import FACET, FACETS, SCRATCH, IndexFolder, make_schema
from nutch2py.backends.index_reading import places
from nutch2py.backends.index_view import META
from nutch2py.errors import IndexingError

if TYPE_CHECKING:
    import tantivy

_NOT_COLUMNS = ("fieldnorm", "idx", "pos", "store", "term")
_NUMBERS = ("weight", "pagerank", "date")
_MANAGED = ".managed.json"
_HEAP, _HEAP_OF_DOCUMENT, _MOST_HEAP = 32_000_000, 500, 4_000_000_000
"""Bytes within which a scratch index is one segment; a document has some 100 of columns."""


class Scores(NamedTuple):
    """What a document is to have in its columns ``pagerank`` and ``weight``."""

    pagerank: float
    weight: float


def replace_scores(folder: IndexFolder, scores: Mapping[str, Scores]) -> int:
    """Let documents have other scores, by their ids; return how many of them are in the index.

    To be called while the folder's lock is held, on an index of :data:`SCORES_LAYOUT` or later. All of it is durable
    and seen by whoever opens or reloads the index when it returns; whatever ends it before leaves the index as it was.
    """
    names: dict[str, str] = {}
    left, found = dict(scores), 0
    scratch = folder.path / SCRATCH
    try:
        shutil.rmtree(scratch, ignore_errors=True)  # of one that was killed
        meta = json.loads((folder.path / META).read_text(encoding="utf-8"))
        for segment in meta["segments"]:
            old, new = uuid.UUID(segment["segment_id"]), uuid.uuid4()
            view = _Segment(folder, meta, segment, scratch / old.hex)
            changed = view.documents_of(left)
            if changed:
                view.write_columns(changed, scratch / new.hex)
                names[str(old)] = str(new)
                found += len(changed)
        if names:
            _commit(folder.path, meta, names, scratch)
            with _closing(folder.open().writer(15_000_000, 1)) as writer:
                writer.garbage_collect_files()
    except (OSError, ValueError, RuntimeError) as error:
        raise folder.unwritable(error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return found


class _Segment:
    """One segment, as an index of its own in a folder of links."""

    def __init__(self, folder: IndexFolder, meta: Mapping[str, Any], segment: Mapping[str, Any], view: Path) -> None:
        import tantivy

        self._layout, self._count = folder.layout, int(segment["max_doc"])
        self.schema = make_schema(folder.layout)
        old = uuid.UUID(segment["segment_id"]).hex
        _check_files(folder.path, old)
        view.mkdir(parents=True)
        (view / META).write_text(json.dumps({**meta, "segments": [segment]}), encoding="utf-8")
        for source, target in _renamed(folder.path, segment, old):
            _link(source, view / target.name)
        _link(folder.path / f"{old}.fast", view / f"{old}.fast")
        index = tantivy.Index.open(str(view))
        index.config_reader("manual")
        self._searcher = index.searcher()

    def documents_of(self, left: dict[str, Scores]) -> dict[int, Scores]:
        """Return what documents of this segment are to have, by their numbers; what is found leaves ``left``."""
        found = places(self._searcher, self.schema, [*left])
        return {address.doc: left.pop(document_id) for document_id, address in found}

    def write_columns(self, changed: Mapping[int, Scores], folder: Path) -> None:
        """Make the scratch index: all documents of the segment in their order, deleted ones without values."""
        import tantivy

        values = self._columns()
        for number, scores in changed.items():
            values[number] |= scores._asdict()
        folder.mkdir(parents=True)
        heap = min(_HEAP + _HEAP_OF_DOCUMENT * self._count, _MOST_HEAP)
        with _closing(tantivy.Index(self.schema, str(folder)).writer(heap, 1)) as writer:
            for each in values:
                writer.add_document(tantivy.Document.from_dict(each, self.schema))
            writer.commit()
        made = json.loads((folder / META).read_text(encoding="utf-8"))["segments"]
        if [each["max_doc"] for each in made] != [self._count]:
            raise IndexingError(f"the scores of {self._count} documents do not fit into memory: index -reindex instead")
        name = uuid.UUID(made[0]["segment_id"]).hex
        (folder / f"{name}.fast").rename(folder.parent / f"{folder.name}.fast")

    def _columns(self) -> list[dict[str, Any]]:
        """Return the values of all columns for each document."""
        import tantivy

        values: list[dict[str, Any]] = [{} for _ in range(self._count)]
        living = [
            address for _, address in self._searcher.search(tantivy.Query.all_query(), self._count, count=False).hits
        ]
        for name in _NUMBERS:
            for address, number in zip(living, self._searcher.fast_field_values(name, living), strict=True):
                if number is not None:
                    values[address.doc][name] = number
        for facet in FACETS:
            name = f"{FACET}{facet}"
            for value, _ in self._searcher.terms_with_prefix(name, ""):
                term = tantivy.Query.term_query(self.schema, name, value, "basic")
                for _, address in self._searcher.search(term, self._count, count=False).hits:
                    values[address.doc].setdefault(name, []).append(value)
        return values


def _check_files(folder: Path, segment: str) -> None:
    """Raise IndexingError where another version of tantivy has files of a segment that would be left behind."""
    kinds = {path.name.removeprefix(f"{segment}.") for path in folder.glob(f"{segment}.*")}
    unknown = {kind for kind in kinds - {*_NOT_COLUMNS, "fast"} if not kind.endswith((".del", ".temp"))}
    if unknown:
        told = f"this tantivy keeps files in {folder} that are not known here ({', '.join(sorted(unknown))})"
        raise IndexingError(f"{told}: run index -reindex instead")


def _renamed(folder: Path, segment: Mapping[str, Any], new: str) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a segment that hold no columns, each with its path under another name of the segment."""
    old, deletes = uuid.UUID(segment["segment_id"]).hex, segment.get("deletes")
    kinds = [*_NOT_COLUMNS, *([f"{deletes['opstamp']}.del"] if deletes else [])]
    return ((folder / f"{old}.{kind}", folder / f"{new}.{kind}") for kind in kinds)


def _commit(folder: Path, meta: dict[str, Any], names: Mapping[str, str], scratch: Path) -> None:
    """Let the index have segments under other names, with the columns that are in ``scratch``.

    The files are noted down as tantivy's before they are made, so that its collector takes them after a kill.
    """
    moves: list[tuple[Path, Path]] = []
    for segment in meta["segments"]:
        new = names.get(segment["segment_id"])
        if new is not None:
            name = uuid.UUID(new).hex
            moves += _renamed(folder, segment, name)
            moves.append((scratch / f"{name}.fast", folder / f"{name}.fast"))
            segment["segment_id"] = new
    managed = json.loads((folder / _MANAGED).read_text(encoding="utf-8"))
    _replace(folder / _MANAGED, [*managed, *(target.name for _, target in moves)])
    for source, target in moves:
        _link(source, target)
    _sync(folder)
    _replace(folder / META, meta)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name; where the disk knows none, a copy."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def _replace(path: Path, content: object) -> None:
    """Write a file of JSON in the place of another one, durably, whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _closing(writer: tantivy.IndexWriter) -> Iterator[tantivy.IndexWriter]:
    """Give back the writer's lock behind the block, and wait for what it merges."""
    try:
        yield writer
    finally:
        writer.wait_merging_threads()
