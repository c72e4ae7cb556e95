"""Seed files: where they are, and what a line of one says."""

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


class Seed(NamedTuple):
    """What a seed line asks for one URL. Interval in seconds; None: by configuration."""

    url: str
    score: float | None = None
    interval: int | None = None
    fixed: bool = False
    metadata: dict[str, str] = {}  # noqa: RUF012
    sitemap: bool = False


def require_seed_path(path: str) -> str:
    """Return the path that a command was given; InputError for an empty one, which would be the current folder."""
    if not path.strip():
        raise InputError("no seeds are named: name a file of URLs, one a line, or a folder of such files")
    return path


def find_seed_files(path: Path) -> list[Path]:
    """Return the file itself, or every file of a folder and the folders in it, sorted; hidden files are left out.

    What cannot be read is an InputError as soon as it is met. Folders that links lead back to are read once.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        state = "is neither a file nor a folder" if path.exists() else "does not exist"
        raise InputError(f"seed folder {path} {state}: name a file of URLs, one a line, or a folder of such files")
    found = [*iter_files(path)]
    if not found:
        raise InputError(f"no seed files to inject found in {path}: put a file there with one URL a line")
    return sorted(found)


def iter_files(path: Path) -> Iterator[Path]:
    """Yield the files of a folder, as :func:`find_seed_files` has them, in any order."""

    def refuse(error: OSError) -> None:
        raise InputError(f"cannot read {error.filename}: {error.strerror}: check its permissions")

    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(path, onerror=refuse, followlinks=True):
        met = Path(folder).stat()
        if (met.st_dev, met.st_ino) in seen:
            folders.clear()
            continue
        seen.add((met.st_dev, met.st_ino))
        for file in (Path(folder, name) for name in names if not name.startswith((".", "_"))):
            if not file.is_file():  # a pipe would be waited for
                raise InputError(f"cannot read {file}: it is no file: take it out of the folder")
            if not os.access(file, os.R_OK):
                raise InputError(f"cannot read {file}: permission denied: check its permissions")
            yield file


def parse_seed_line(line: str) -> list[Seed]:
    """Return the seeds of a line: none for a comment, several for ``sitemaps:``. Malformed numbers are ignored."""
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
            seed = seed if score is None else seed._replace(score=score)
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
    """Return what is wrong with the fields of a seed line, whose URL is injected without them."""
    found = []
    for field in line.strip().split("\t")[1:]:
        name, equals, value = field.partition("=")
        if not equals and field.strip() and "sitemaps:" not in field and not field.startswith("-sitemap"):
            found.append(f"{field[:_MAX_SHOWN_CHARS]!r} is no name=value: it is left out")
        elif name == SCORE_KEY and _parse_score(value) is None:
            found.append(
                f"{name} is {value[:_MAX_SHOWN_CHARS]!r}, which is not a number: the score is db.score.injected"
            )
        elif name in (INTERVAL_KEY, FIXED_INTERVAL_KEY) and _parse_seconds(value) is None:
            found.append(
                f"{name} is {value[:_MAX_SHOWN_CHARS]!r}, which is not a whole number of seconds: it is left out"
            )
    return found


def _parse_score(text: str) -> float | None:
    """Return a number that a cell can hold (a float of four bytes), else None."""
    try:
        score = float(text)
    except ValueError:
        return None
    return score if math.isfinite(float32(score)) and "_" not in text else None


def _parse_seconds(text: str) -> int | None:
    """Return a whole number of 32 bits, else None."""
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        return None
    seconds = int(text)
    return seconds if -(2**31) <= seconds < 2**31 else None
