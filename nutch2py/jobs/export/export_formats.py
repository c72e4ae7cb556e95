"""The files of an export: each format takes JSON lines, which tasks wrote, and writes one or many files."""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from nutch2py.jobs.export.archive_writer import ARCHIVE_FORMATS
from nutch2py.jobs.export.arrow_tables import write_parquet
from nutch2py.jobs.export.markdown_chunks import split_markdown

EXPORT_FORMATS = ("jsonl", "csv", "parquet", "markdown", *ARCHIVE_FORMATS)
"""Formats of an export."""
MARKDOWN_COLUMNS = ("url", "title", "lang", "fetch_time", "signature", "markdown")
"""Columns of Markdown: all but the last are its front matter."""
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
_MAX_NAME = 80  # characters of a file name, before the digest of the URL


def write_part(export_format: str, source: Path, target_dir: Path, columns: Sequence[str], chunk_tokens: int) -> int:
    """Write the files of a part; return their number.

    Args:
        export_format: One of :data:`EXPORT_FORMATS` that is no archive.
        source: JSON lines of a task, which are moved or deleted.
        target_dir: Folder of the export.
        columns: Names of the columns.
        chunk_tokens: With markdown, write chunks of at most about this many tokens as JSON lines; 0: a file per page.

    Raises:
        OSError: A file cannot be written.
    """
    if not source.stat().st_size:
        source.unlink()
        return 0
    if export_format == "jsonl":
        source.replace(target_dir / f"{source.name}.jsonl")
        return 1
    with source.open("rb") as lines:
        if export_format == "markdown" and not chunk_tokens:
            count = 0
            for row in map(orjson.loads, lines):
                count += _write_page(row, target_dir)
        else:
            suffix = "jsonl" if chunk_tokens else export_format
            partial = target_dir / f".{source.name}.{suffix}"
            if export_format == "parquet":
                write_parquet(lines, partial, columns)
            elif export_format == "csv":
                _write_csv(lines, partial, columns)
            else:
                _write_chunks(lines, partial, chunk_tokens)
            partial.replace(target_dir / partial.name[1:])
            count = 1
    source.unlink()
    return count


def _write_csv(lines: BinaryIO, target: Path, columns: Sequence[str]) -> None:
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in map(orjson.loads, lines):
            writer.writerow([_to_csv_value(row.get(name)) for name in columns])


def _to_csv_value(value: object) -> object:
    return orjson.dumps(value).decode() if isinstance(value, list) else value


def _write_chunks(lines: BinaryIO, target: Path, max_tokens: int) -> None:
    with target.open("wb") as file:
        for row in map(orjson.loads, lines):
            for chunk in _iter_chunks(row, max_tokens):
                file.write(orjson.dumps(chunk, option=orjson.OPT_APPEND_NEWLINE))


def _iter_chunks(row: dict[str, Any], max_tokens: int) -> Iterator[dict[str, object]]:
    about = {name: row.get(name) for name in MARKDOWN_COLUMNS[:-1]}
    for position, chunk in enumerate(split_markdown(row.get("markdown") or "", max_tokens)):
        name = sha256(f"{row['url']}\n{position}".encode()).hexdigest()[:32]
        yield {
            "id": name, **about, "position": position, "headings": chunk.headings, "tokens": chunk.tokens,
            "text": chunk.text,
        }  # fmt: skip


def _write_page(row: dict[str, Any], target_dir: Path) -> int:
    if not row.get("markdown"):
        return 0
    folder = target_dir / (_UNSAFE.sub("_", row.get("url_host_name") or "")[:_MAX_NAME].strip(".") or "_")
    folder.mkdir(exist_ok=True)
    front = "".join(
        f"{name}: {orjson.dumps(row[name]).decode()}\n" for name in MARKDOWN_COLUMNS[:-1] if row.get(name) is not None
    )
    path = folder / _page_file_name(row["url"])
    partial = path.with_name(f".{path.name}")
    partial.write_text(f"---\n{front}---\n\n{row['markdown'].rstrip()}\n", encoding="utf-8")
    partial.replace(path)
    return 1


def _page_file_name(url: str) -> str:
    """Return a file name: the last part of the path for people, and a digest, which makes it unique.

    >>> _page_file_name("http://h.test/docs/Install%20it.html?x=1")
    'Install_20it.html-…'
    """
    path = url.partition("://")[2].partition("/")[2].partition("?")[0].rstrip("/")
    name = _UNSAFE.sub("_", path.rpartition("/")[2])[:_MAX_NAME].strip("._") or "index"
    return f"{name}-{sha256(url.encode()).hexdigest()[:16]}.md"


def remove_output(target_dir: Path, *, is_new: bool) -> None:
    """Delete what an export wrote; ``is_new``: with its folder."""
    if is_new:
        shutil.rmtree(target_dir, ignore_errors=True)
        return
    for entry in os.scandir(target_dir):
        shutil.rmtree(entry.path, ignore_errors=True) if entry.is_dir() else Path(entry.path).unlink(missing_ok=True)
