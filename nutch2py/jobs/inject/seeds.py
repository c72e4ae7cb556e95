"""Seed files: find them and parse their lines."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nutch2py.errors import InputError
from nutch2py.records.cells import float32
from nutch2py.schedule.abstract_fetch_schedule import FIXED_INTERVAL_KEY

_MAX_SHOWN_CHARS = 100  # characters of a bad value
SCORE_KEY, INTERVAL_KEY = "nutch.score", "nutch.fetchInterval"
DEFAULT_SCORE = -1.0
"""Score of a seed line that means ``db.score.injected``, as in Nutch."""


class Seed(NamedTuple):
    """The settings that a seed line gives for one URL. ``interval`` in seconds; None for the configured value."""

    url: str
    score: float | None = None
    interval: int | None = None
    fixed: bool = False
    metadata: dict[str, str] = {}  # noqa: RUF012
    sitemap: bool = False


def require_seed_path(path: str) -> str:
    """Return ``path``; raise InputError for an empty path, which would be the current folder."""
    if not path.strip():
        raise InputError("no seeds given: name a file of URLs, one per line, or a folder of such files")
    return path


def find_seed_files(path: Path) -> list[Path]:
    """Return the file itself, or all files of a folder and its subfolders, sorted. Hidden files are skipped.

    Folders that symbolic links lead back to are read once.

    Raises:
        InputError: The path does not exist, a file is not readable, or there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        state = "is neither a file nor a folder" if path.exists() else "does not exist"
        raise InputError(f"seed folder {path} {state}: name a file of URLs, one per line, or a folder of such files")
    files = [*iter_files(path)]
    if not files:
        raise InputError(f"no seed files to inject found in {path}: put a file there with one URL per line")
    return sorted(files)


def iter_files(path: Path) -> Iterator[Path]:
    """Yield the files of a folder that :func:`find_seed_files` returns, in any order."""

    def raise_input_error(error: OSError) -> None:
        raise InputError(f"cannot read {error.filename}: {error.strerror}: check its permissions")

    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(path, onerror=raise_input_error, followlinks=True):
        stat = Path(folder).stat()
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        for file in (Path(folder, name) for name in names if not name.startswith((".", "_"))):
            if not file.is_file():  # opening a pipe would block
                raise InputError(f"cannot read {file}: it is not a regular file: move it out of the folder")
            if not os.access(file, os.R_OK):
                raise InputError(f"cannot read {file}: permission denied: check its permissions")
            yield file


def parse_seed_line(line: str) -> list[Seed]:
    """Return the seeds of a line: none for a comment, several for ``sitemaps:``. Ignore invalid numbers.

    A score of -1 is that of ``db.score.injected``, as in Nutch; any other score below 0 is invalid, since OPIC squares
    it. An interval below 1 s is invalid: the page would be due in every round, as in Nutch.
    """
    line = line.strip()
    if not line or line.startswith("#"):
        return []
    if "\t" not in line:
        return [Seed(line)]
    url, *fields = line.split("\t")
    seeds: list[Seed] = []
    seed = Seed(url)
    metadata: dict[str, str] = {}
    for field in fields:
        name, equals, value = field.partition("=")
        if "sitemaps:" in field:
            seeds += [Seed(url + path, sitemap=True) for path in field.split()[1:]]
        elif field.startswith("-sitemap"):
            seed = seed._replace(sitemap=True)
        elif not equals:
            continue
        elif name == SCORE_KEY:
            score = _parse_score(value)
            seed = seed if score in (None, DEFAULT_SCORE) else seed._replace(score=score)
        elif name == INTERVAL_KEY:
            interval = _parse_seconds(value)
            seed = seed if interval is None or seed.fixed else seed._replace(interval=interval)
        elif name == FIXED_INTERVAL_KEY:
            interval = _parse_seconds(value)
            seed = seed if interval is None else seed._replace(interval=interval, fixed=True)
        else:
            metadata[name] = value
    return [*seeds, seed._replace(metadata=metadata)]


def find_line_errors(line: str) -> list[str]:
    """Return the problems of the fields of a seed line. Its URL is injected without these fields."""
    problems = []
    for field in line.strip().split("\t")[1:]:
        name, equals, value = field.partition("=")
        if not equals and field.strip() and "sitemaps:" not in field and not field.startswith("-sitemap"):
            problems.append(f"{field[:_MAX_SHOWN_CHARS]!r} is not name=value: ignored")
        elif name == SCORE_KEY and _parse_score(value) is None:
            problems.append(
                f"{name} is {value[:_MAX_SHOWN_CHARS]!r}, which is not a number of 0 or more: the score is "
                "db.score.injected"
            )
        elif name in (INTERVAL_KEY, FIXED_INTERVAL_KEY) and _parse_seconds(value) is None:
            problems.append(
                f"{name} is {value[:_MAX_SHOWN_CHARS]!r}, which is not a whole number of seconds from 1 to "
                "2147483647: ignored"
            )
    return problems


def _parse_score(text: str) -> float | None:
    """Return a number of 0 or more that fits a 4-byte float cell, or :data:`DEFAULT_SCORE`; else None."""
    try:
        score = float(text)
    except ValueError:
        return None
    is_valid = math.isfinite(float32(score)) and "_" not in text and (score >= 0 or score == DEFAULT_SCORE)
    return score if is_valid else None


def _parse_seconds(text: str) -> int | None:
    """Return a whole number from 1 to 2**31 - 1, else None."""
    if not re.fullmatch(r"[+]?[0-9]{1,10}", text):
        return None
    seconds = int(text)
    return seconds if 0 < seconds < 2**31 else None
