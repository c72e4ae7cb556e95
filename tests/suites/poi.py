"""Documents: every test file of Apache POI is read, or rejected for a stated reason.

Not valid as a reason: an error of the program, a parser that ended or took too long, and "failed" alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from tests.suites.apache import POI, reader, rejection
from tests.suites.suite import Case, Goal

GOALS = (Goal("POI's files", 1.0),)
_REASON = re.compile(
    r"[A-Z]\w+Parser: \S.*|.*ParserNotFound: parser not found for contentType=\S+ .*|.*parser\.unpack\.max\.\w+",
    re.DOTALL,
)


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each file; read and rejected files are counted separately."""
    folder = POI.folder(data) / "test-data"
    read = reader(Configuration.load(overrides={"parser.timeout": "60", "http.agent.name": "x"}))
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        left = rejection(read(file)) if file.stat().st_size else ""
        name = file.relative_to(folder).as_posix()
        yield Case("POI's files", name, "" if _REASON.fullmatch(left) else left)
        yield Case("POI's files that are read", name, left)
