"""Replaces scores of documents in the embedded index without re-indexing their texts, by rewriting columns of segments.

A segment of tantivy never changes, and no column of it can be updated. But its columns are in a file of their own,
``<segment>.fast``, and their values can be read: numbers directly, facet values through their postings. A temporary
index with the same documents in the same order, and with columns only, produces the ``.fast`` file that the segment
would have. The segment with that file gets a new name; hard links give its other files that name, too. ``meta.json``
then names the new segment: the rename of ``meta.json`` commits all segments at once. Before it nothing has changed.
After it readers see the scores with their next reload, and tantivy's garbage collector removes the old files.

The assumptions about tantivy's files are in :data:`_OTHER_EXTENSIONS` and :func:`_renamed_files`;
tests/indexer/test_score_updates.py verifies them.
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

from nutch2py.backends.embedded_index.index_directory import META_FILE, SCORES_TEMP_DIR, IndexDirectory, make_schema
from nutch2py.backends.embedded_index.index_lookup import find_addresses
from nutch2py.backends.index_fields import FACET_NAMES, FACET_PREFIX
from nutch2py.errors import IndexingError

if TYPE_CHECKING:
    import tantivy

_OTHER_EXTENSIONS = ("fieldnorm", "idx", "pos", "store", "term")
NUMERIC_COLUMNS = ("weight", "pagerank", "date")
"""Numeric columns of a segment that score updates replace or copy."""
_MANAGED_FILE = ".managed.json"
_BASE_HEAP_BYTES, _HEAP_BYTES_PER_DOCUMENT, _MAX_HEAP_BYTES = 32_000_000, 500, 4_000_000_000
"""Memory within which a temporary index stays one segment; a document has about 100 bytes of columns."""


class DocumentScores(NamedTuple):
    """New values of a document's columns ``pagerank`` and ``weight``."""

    pagerank: float
    weight: float


def replace_scores(index_dir: IndexDirectory, scores: Mapping[str, DocumentScores]) -> int:
    """Replace the scores of documents by their ids.

    The caller must hold the directory's lock, on an index of layout :data:`SCORE_COLUMNS_LAYOUT` or later. On return
    the change is durable and visible to every reader that opens or reloads the index; an earlier failure leaves the
    index unchanged.

    Returns:
        The number of the documents that are in the index.

    """
    names: dict[str, str] = {}
    left, found = dict(scores), 0
    temp_dir = index_dir.path / SCORES_TEMP_DIR
    try:
        shutil.rmtree(temp_dir, ignore_errors=True)  # of a killed process
        meta = json.loads((index_dir.path / META_FILE).read_text(encoding="utf-8"))
        for segment in meta["segments"]:
            old, new = uuid.UUID(segment["segment_id"]), uuid.uuid4()
            view = SegmentView(index_dir, meta, segment, temp_dir / old.hex)
            changed = view.pop_documents(left)
            if changed:
                view.write_columns(changed, temp_dir / new.hex)
                names[str(old)] = str(new)
                found += len(changed)
        if names:
            _commit_segments(index_dir.path, meta, names, temp_dir)
            with _closing_writer(index_dir.open().writer(15_000_000, 1)) as writer:
                writer.garbage_collect_files()
    except (OSError, ValueError, RuntimeError) as error:
        raise index_dir.write_error(error) from error
    finally:
        shutil.rmtree(temp_dir, ignore_errors=True)
    return found


class SegmentView:
    """One segment, opened as an index of its own in a directory of links."""

    def __init__(self, folder: IndexDirectory, meta: Mapping[str, Any], segment: Mapping[str, Any], view: Path) -> None:
        import tantivy

        self._layout, self._document_count = folder.layout, int(segment["max_doc"])
        self.schema = make_schema(folder.layout)
        old = uuid.UUID(segment["segment_id"]).hex
        _check_files(folder.path, old)
        view.mkdir(parents=True)
        (view / META_FILE).write_text(json.dumps({**meta, "segments": [segment]}), encoding="utf-8")
        for source, target in _renamed_files(folder.path, segment, old):
            _link_or_copy(source, view / target.name)
        _link_or_copy(folder.path / f"{old}.fast", view / f"{old}.fast")
        index = tantivy.Index.open(str(view))
        index.config_reader("manual")
        self._searcher = index.searcher()

    def pop_documents(self, left: dict[str, DocumentScores]) -> dict[int, DocumentScores]:
        """Return the new scores of this segment's documents by number; remove them from ``left``."""
        found = find_addresses(self._searcher, self.schema, [*left])
        return {address.doc: left.pop(document_id) for document_id, address in found}

    def write_columns(self, changed: Mapping[int, DocumentScores], folder: Path) -> None:
        """Build the temporary index: all documents of the segment in their order, deleted ones without values."""
        import tantivy

        values = self._read_columns()
        for number, scores in changed.items():
            values[number] |= scores._asdict()
        folder.mkdir(parents=True)
        heap = min(_BASE_HEAP_BYTES + _HEAP_BYTES_PER_DOCUMENT * self._document_count, _MAX_HEAP_BYTES)
        with _closing_writer(tantivy.Index(self.schema, str(folder)).writer(heap, 1)) as writer:
            for each in values:
                writer.add_document(tantivy.Document.from_dict(each, self.schema))
            writer.commit()
        segments = json.loads((folder / META_FILE).read_text(encoding="utf-8"))["segments"]
        if [each["max_doc"] for each in segments] != [self._document_count]:
            raise IndexingError(
                f"the scores of {self._document_count} documents do not fit into memory: run index -reindex instead"
            )
        name = uuid.UUID(segments[0]["segment_id"]).hex
        (folder / f"{name}.fast").rename(folder.parent / f"{folder.name}.fast")

    def _read_columns(self) -> list[dict[str, Any]]:
        """Return the values of all columns for each document."""
        import tantivy

        values: list[dict[str, Any]] = [{} for _ in range(self._document_count)]
        alive = [
            address
            for _, address in self._searcher.search(tantivy.Query.all_query(), self._document_count, count=False).hits
        ]
        for name in NUMERIC_COLUMNS:
            for address, number in zip(alive, self._searcher.fast_field_values(name, alive), strict=True):
                if number is not None:
                    values[address.doc][name] = number
        for facet in FACET_NAMES:
            name = f"{FACET_PREFIX}{facet}"
            for value, _ in self._searcher.terms_with_prefix(name, ""):
                term = tantivy.Query.term_query(self.schema, name, value, "basic")
                for _, address in self._searcher.search(term, self._document_count, count=False).hits:
                    values[address.doc].setdefault(name, []).append(value)
        return values


def _check_files(folder: Path, segment: str) -> None:
    """Raise IndexingError when another version of tantivy has files of a segment that would be lost."""
    kinds = {path.name.removeprefix(f"{segment}.") for path in folder.glob(f"{segment}.*")}
    unknown = {kind for kind in kinds - {*_OTHER_EXTENSIONS, "fast"} if not kind.endswith((".del", ".temp"))}
    if unknown:
        problem = f"this version of tantivy keeps unknown files in {folder} ({', '.join(sorted(unknown))})"
        raise IndexingError(f"{problem}: run index -reindex instead")


def _renamed_files(folder: Path, segment: Mapping[str, Any], new: str) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a segment without columns, each with its path under the new segment name."""
    old, deletes = uuid.UUID(segment["segment_id"]).hex, segment.get("deletes")
    kinds = [*_OTHER_EXTENSIONS, *([f"{deletes['opstamp']}.del"] if deletes else [])]
    return ((folder / f"{old}.{kind}", folder / f"{new}.{kind}") for kind in kinds)


def _commit_segments(folder: Path, meta: dict[str, Any], names: Mapping[str, str], temp_dir: Path) -> None:
    """Commit segments under new names, with the columns in ``temp_dir``.

    The files are listed as managed before they are created, so that tantivy's garbage collector removes them after a
    kill.
    """
    moves: list[tuple[Path, Path]] = []
    for segment in meta["segments"]:
        new = names.get(segment["segment_id"])
        if new is not None:
            name = uuid.UUID(new).hex
            moves += _renamed_files(folder, segment, name)
            moves.append((temp_dir / f"{name}.fast", folder / f"{name}.fast"))
            segment["segment_id"] = new
    managed = json.loads((folder / _MANAGED_FILE).read_text(encoding="utf-8"))
    _replace_json(folder / _MANAGED_FILE, [*managed, *(target.name for _, target in moves)])
    for source, target in moves:
        _link_or_copy(source, target)
    _sync_dir(folder)
    _replace_json(folder / META_FILE, meta)


def _link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link to a file, or a copy on file systems without hard links."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def _replace_json(path: Path, content: object) -> None:
    """Replace a JSON file atomically and durably."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync_dir(path.parent)


def _sync_dir(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _closing_writer(writer: tantivy.IndexWriter) -> Iterator[tantivy.IndexWriter]:
    """Release the writer's lock after the block, and wait for its merges."""
    try:
        yield writer
    finally:
        writer.wait_merging_threads()
