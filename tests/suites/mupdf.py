"""PDF: the letters that MuPDF reads in the test files of pdf.js and veraPDF (needs the package pymupdf)."""

from __future__ import annotations

import importlib
import multiprocessing
import unicodedata
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

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
_SECONDS = 60
_POINTER = b"version https://git-lfs"  # of a file that the repository does not hold


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each PDF in which MuPDF finds letters."""
    try:
        mupdf = importlib.import_module("pymupdf")
    except ImportError:
        yield Case(_PART, "pymupdf", "not installed: pip install pymupdf")
        return
    mupdf.TOOLS.mupdf_display_errors(False)
    read = reader(Configuration.load(overrides={"parser.timeout": "60", "http.agent.name": "x"}))
    for repository in REPOSITORIES:
        folder = repository.folder(data)
        for file in sorted(folder.rglob("*.pdf")):
            if file.read_bytes().startswith(_POINTER):
                continue
            expected = letters(_read_by_mupdf(mupdf, file))
            if not expected:
                continue
            parse = read(file)
            share = (letters(parse.text) & expected).total() / expected.total()
            left = "" if share >= _LETTERS else rejection(parse) or f"{share:.0%} of {expected.total()} letters"
            yield Case(_PART, f"{repository.name}: {file.relative_to(folder)}", left)


def letters(text: str) -> Counter[str]:
    """Return the count of each letter and digit of a text, in any form and case."""
    return Counter(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


def _read_by_mupdf(mupdf: ModuleType, file: Path) -> str:
    """Return the text, "" where MuPDF fails; in a process of its own, which some files stop."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_text, args=(mupdf, file, sender))
    process.start()
    sender.close()
    try:
        return str(receiver.recv()) if receiver.poll(_SECONDS) else ""
    except EOFError:
        return ""
    finally:
        process.kill()
        process.join()
        receiver.close()


def _send_text(mupdf: ModuleType, file: Path, sender: Connection) -> None:
    try:
        with mupdf.open(file) as document:
            closed = document.needs_pass and not document.authenticate("")
            sender.send("" if closed else "".join(page.get_text() for page in document))
    except Exception:  # noqa: BLE001 - whatever MuPDF rejects is no reference
        sender.send("")
