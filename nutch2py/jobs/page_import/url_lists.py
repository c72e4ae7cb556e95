"""Lists of URLs as seed lines: plain lists, CSV, CDXJ and sitemaps, each also compressed with gzip."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import orjson

from nutch2py.errors import InputError
from nutch2py.jobs.inject.seeds import INTERVAL_KEY, SCORE_KEY
from nutch2py.parser.sitemap.sitemap_parser import parse_sitemap

INPUT_FORMATS = ("auto", "warc", "wacz", "urls", "csv", "cdxj", "sitemap")
"""Formats of an import; auto finds it by content and file name."""
_MAX_LINE = 1 << 20
_MAX_SITEMAP_FILE = 64 << 20
_COLUMN_KEYS = {"score": SCORE_KEY, "interval": INTERVAL_KEY}


def detect_format(path: Path) -> str:
    """Return the format of a file, by its first bytes, else by its name.

    Raises:
        InputError: The file is not readable.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}: check the file") from error
    name = path.name.lower().removesuffix(".open").removesuffix(".gz")
    if head[:4] == b"PK\x03\x04" or name.endswith(".wacz"):
        return "wacz"
    if head[:2] == b"\x1f\x8b":
        try:
            head = zlib.decompressobj(31).decompress(head, 1024)
        except zlib.error:
            head = b""
    if head[:5] == b"WARC/" or name.endswith(".warc"):
        return "warc"
    if name.endswith((".cdxj", ".cdx")):
        return "cdxj"
    if head.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")[:1] == b"<":
        return "sitemap"
    return "csv" if name.endswith(".csv") else "urls"


def write_seed_lines(path: Path, input_format: str, target: IO[bytes], counts: Counter[str]) -> int:
    """Write the URLs of a file as lines for inject; return their number.

    Args:
        path: The file.
        input_format: urls, csv, cdxj or sitemap.
        target: Receives the lines.
        counts: Counts ``malformed_line``.

    Raises:
        InputError: The file is not readable.
    """
    written = 0
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            source: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_gzip else raw  # type: ignore[assignment]
            reader = {"urls": _read_urls, "csv": _read_csv, "cdxj": _read_cdxj, "sitemap": _read_sitemap}[input_format]
            for line in reader(source):
                if line is None:
                    counts["malformed_line"] += 1
                    continue
                target.write(line.encode("utf-8", "replace") + b"\n")
                written += 1
    except (EOFError, zlib.error, gzip.BadGzipFile):
        counts["damaged_gzip"] += 1
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}: check the file") from error
    return written


def _read_lines(source: IO[bytes]) -> Iterator[str | None]:
    """Yield the lines that are not empty; None for one that is too long."""
    is_rest = False
    while line := source.readline(_MAX_LINE):
        is_whole = line.endswith(b"\n") or len(line) < _MAX_LINE
        if is_whole and not is_rest:
            text = line.decode("utf-8", "replace").removeprefix("\ufeff").strip("\r\n")
            if text.strip():
                yield text
        elif is_whole:
            yield None
        is_rest = not is_whole


def _read_urls(source: IO[bytes]) -> Iterator[str | None]:
    for line in _read_lines(source):
        if line is None or not line.startswith("#"):
            yield line


def _read_csv(source: IO[bytes]) -> Iterator[str | None]:
    """Yield the rows of CSV: by its header, else URL and score. Other columns become metadata."""
    text = io.TextIOWrapper(source, "utf-8-sig", "replace", newline="")
    try:
        yield from _read_csv_rows(csv.reader(text))
    finally:
        text.detach()  # the caller closes the file


def _read_csv_rows(rows: Iterator[list[str]]) -> Iterator[str | None]:
    names: list[str] | None = None
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        if names is None:
            lower = [cell.strip().lower() for cell in row]
            if "url" in lower:
                names = lower
                continue
            names = ["url", "score"]
        if not any(row):
            continue
        values = {name: " ".join(cell.split()) for name, cell in zip(names, row, strict=False)}
        url = values.pop("url", "")
        if not url:
            yield None
            continue
        fields = [f"{_COLUMN_KEYS.get(name, name)}={value}" for name, value in values.items() if name and value]
        yield "\t".join([url, *fields])


def _read_cdxj(source: IO[bytes]) -> Iterator[str | None]:
    """Yield the URLs of CDXJ, and of CDX with 11 or 9 fields; one for successive captures of a URL."""
    last = ""
    for line in _read_lines(source):
        if line is None:
            yield None
            continue
        if line.startswith((" CDX", "!")):
            continue
        parts = line.split(" ", 2)
        url: object = None
        if len(parts) == 3 and parts[2].startswith("{"):
            try:
                url = orjson.loads(parts[2]).get("url")
            except ValueError:
                url = None
        elif len(parts) == 3:
            url = parts[2].split(" ", 1)[0]
        if not isinstance(url, str) or "://" not in url:
            yield None
        elif url != last:
            last = url
            yield "".join(url.split())


def _read_sitemap(source: IO[bytes]) -> Iterator[str | None]:
    """Yield the pages of a sitemap; those of an index of sitemaps are marked as sitemaps."""
    try:
        sitemap = parse_sitemap(source.read(_MAX_SITEMAP_FILE))
    except ValueError:
        yield None
        return
    for entry in sitemap.entries:
        yield f"{''.join(entry.url.split())}\t-sitemap" if sitemap.is_index else "".join(entry.url.split())
