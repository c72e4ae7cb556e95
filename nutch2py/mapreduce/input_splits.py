"""Map input, one task per line: a key range, due rows, a part of a batch list, or a part of a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from nutch2py.errors import InputError
from nutch2py.table import DataStore, KeyRange, TableQuery
from nutch2py.table.due_index import TimeSpan

MIN_SPLIT_BYTES, MAX_SPLIT_BYTES = 64 << 10, 16 << 20
"""Bytes of a file in one split."""


class RangeSplit(NamedTuple):
    """Rows of the crawl's table in a key range."""

    key_range: KeyRange
    host: str = ""
    """The host that stores most of the rows, as the store names it; used by the driver, not sent to tasks."""


class BatchListSplit(NamedTuple):
    """Rows of a batch list, of the list's entries in a key range."""

    key_range: KeyRange


class DueIndexSplit(NamedTuple):
    """Rows that the due index lists in ranges of time (first and last, ms).

    ``partition``: for an index that is read in parallel, one of
    :meth:`nutch2py.table.due_index.DueIndexReader.partitions`.
    """

    spans: list[TimeSpan]
    partition: tuple[int, int] = (0, 0)


class DerivedTableSplit(NamedTuple):
    """Rows of the derived table ``batch`` in a key range."""

    key_range: KeyRange


class FileSplit(NamedTuple):
    """Lines of a text file that start at ``start`` (included) up to ``stop`` (excluded), byte offsets."""

    path: str
    start: int
    stop: int
    order: int
    """Rank of the split among all, for rules like "the last line wins"."""
    content: bytes | None = None
    """The lines themselves, for a task on another machine that cannot read the file."""
    lines_before: int = 0
    """With ``content``: number of lines of the file before it."""


Split = RangeSplit | BatchListSplit | DueIndexSplit | DerivedTableSplit | FileSplit


def range_splits(store: DataStore[Any], query: TableQuery, task_count: int) -> list[Split]:
    """Split the input of a query into about ``task_count`` parts."""
    ranges = store.key_ranges(query, task_count)
    hosts = store.range_hosts(ranges) if len(ranges) > 1 else [""]
    return [RangeSplit(*each) for each in zip(ranges, hosts, strict=True)]


def encode_split(split: Split) -> bytes:
    """Return the line of map input."""
    match split:
        case RangeSplit(key_range, _):
            return orjson.dumps({"range": list(key_range)})
        case BatchListSplit(key_range):
            return orjson.dumps({"list": list(key_range)})
        case DueIndexSplit(spans, part):
            return orjson.dumps({"due": [list(span) for span in spans], "part": part})
        case DerivedTableSplit(key_range):
            return orjson.dumps({"side": list(key_range)})
        case FileSplit():
            text = None if split.content is None else split.content.decode("latin-1")
            return orjson.dumps({"file": [*split[:4], text, split.lines_before]})


def decode_split(line: bytes) -> Split:
    """Return the split of a line of map input."""
    fields = orjson.loads(line)
    if "range" in fields:
        return RangeSplit(KeyRange(*fields["range"]))
    if "list" in fields:
        return BatchListSplit(KeyRange(*fields["list"]))
    if "due" in fields:
        return DueIndexSplit([TimeSpan(*span) for span in fields["due"]], tuple(fields["part"]))
    if "side" in fields:
        return DerivedTableSplit(KeyRange(*fields["side"]))
    path, start, stop, order, text, before = fields["file"]
    return FileSplit(path, start, stop, order, None if text is None else text.encode("latin-1"), before)


def split_files(paths: Iterable[Path], split_count: int) -> list[FileSplit]:
    """Split text files into about ``split_count`` parts in total, each of one file."""
    sizes = []
    for path in paths:
        try:
            sizes.append((path, path.stat().st_size))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}: check that it exists and may be read") from error
    piece = min(max(sum(size for _, size in sizes) // max(split_count, 1) + 1, MIN_SPLIT_BYTES), MAX_SPLIT_BYTES)
    splits: list[FileSplit] = []
    for path, size in sizes:
        splits += [
            FileSplit(str(path), start, min(start + piece, size), len(splits) + number)
            for number, start in enumerate(range(0, max(size, 1), piece))
        ]
    return [split._replace(order=number) for number, split in enumerate(splits)]


def embed_contents(splits: Iterable[Split]) -> Iterator[Split]:
    """Yield splits with their lines included, for tasks that cannot read the files.

    Each file is read once, and one part is in memory at a time: the parts of a file must be in their order.
    """
    before: dict[str, int] = {}
    for split in splits:
        if not isinstance(split, FileSplit) or split.content is not None:
            yield split
            continue
        content = b"".join(read_split_lines(split))
        known = before[split.path] if split.path in before else count_lines_before(split)
        before[split.path] = known + content.count(b"\n")
        yield split._replace(content=content, lines_before=known)


def count_lines_before(split: FileSplit) -> int:
    """Return the number of lines of the file before the split; reads the file up to there."""
    if split.content is not None:
        return split.lines_before
    if not split.start:
        return 0
    with Path(split.path).open("rb") as file:
        count, left = 0, split.start - 1
        while left and (part := file.read(min(left, 1 << 20))):
            count, left = count + part.count(b"\n"), left - len(part)
        return count + 1  # the line that started earlier, which the previous split reads


def read_split_lines(split: FileSplit) -> Iterable[bytes]:
    """Yield the lines of a part: those whose first byte is in it, as in Hadoop's TextInputFormat."""
    if split.content is not None:
        yield from io.BytesIO(split.content)
        return
    with Path(split.path).open("rb") as file:
        at = split.start
        if at:
            file.seek(at - 1)
            at += len(file.readline()) - 1  # the line that started earlier belongs to the previous part
        for line in file if at < split.stop else ():
            yield line
            at += len(line)
            if at >= split.stop:
                return
