"""PDF: the letters that MuPDF reads in the test files of pdf.js and veraPDF (needs the package pymupdf)."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from tests.suites.apache import reader, rejection
from tests.suites.suite import Case, Goal, Repository

REPOSITORIES = (
    Repository("mozilla/pdf.js", "0f26334f9d6f96119f6e5164fb65832fbbde7344", ("*.pdf",)),
    Repository("veraPDF/veraPDF-corpus", "910b2ca7aa6870375e2b6834c58a0d4b90a7dea6", ("*.pdf",)),
)
_PART = "letters of MuPDF"
GOALS = (Goal(_PART, 0.95),)
_LETTERS = 0.99  # the least share of MuPDF's letters and digits that have to be found
_BATCH, _SECONDS = 50, 100
_PROGRAM = """
import json, sys
import pymupdf
pymupdf.TOOLS.mupdf_display_errors(False)
texts = []
for name in sys.argv[1:]:
    try:
        with pymupdf.open(name) as document:
            closed = document.needs_pass and not document.authenticate("")
            texts.append("" if closed else "".join(page.get_text() for page in document))
    except Exception:
        texts.append("")
print(json.dumps(texts))
"""
_POINTER = b"version https://git-lfs"  # of a file that the repository does not hold


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each PDF in which MuPDF finds letters."""
    if _run_mupdf([]) is None:
        yield Case(_PART, "pymupdf", "not installed: pip install pymupdf")
        return
    read = reader(Configuration.load(overrides={"parser.timeout": "60", "http.agent.name": "x"}))
    for repository in REPOSITORIES:
        folder = repository.folder(data)
        files = [file for file in sorted(folder.rglob("*.pdf")) if not file.read_bytes().startswith(_POINTER)]
        for file, text in zip(files, _read_by_mupdf(files), strict=True):
            expected = letters(text)
            if not expected:
                continue
            parse = read(file)
            share = (letters(parse.text) & expected).total() / expected.total()
            left = "" if share >= _LETTERS else rejection(parse) or f"{share:.0%} of {expected.total()} letters"
            yield Case(_PART, f"{repository.name}: {file.relative_to(folder)}", left)


def letters(text: str) -> Counter[str]:
    """Return the count of each letter and digit of a text, in any form and case."""
    return Counter(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


def _read_by_mupdf(files: list[Path]) -> Iterator[str]:
    """Yield the text of each file, "" where MuPDF fails; some files stop its process, which is then run for each."""
    for start in range(0, len(files), _BATCH):
        batch = files[start : start + _BATCH]
        texts = _run_mupdf(batch)
        if texts is None:
            texts = [text for file in batch for text in _run_mupdf([file]) or [""]]
        yield from texts


def _run_mupdf(files: Sequence[Path]) -> list[str] | None:
    """Return the texts of files, None if the program fails."""
    command = [sys.executable, "-c", _PROGRAM, *map(str, files)]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return [str(text) for text in json.loads(done.stdout)]
