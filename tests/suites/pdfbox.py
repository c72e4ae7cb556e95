"""PDF: the texts that Apache PDFBox gets of its test files, word by word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from tests.suites.apache import PDFBOX, reader, rejection
from tests.suites.suite import Case, Goal

GOALS = (Goal("PDFBox's texts", 34 / 36),)
_REASONS = {
    "FC60_Times.pdf": "PDFBox's text has the letters of an Arabic word in another order than the page",
    "PDFBOX-3053-reduced.pdf": "letters identified only by glyph names, which PDFium does not read",
}
_WORDS = 0.95  # the least share of a text's words that have to be found


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each PDF with a text; as PDFBox writes it in the order of the file, or of the page."""
    folder = PDFBOX.folder(data) / "pdfbox/src/test/resources/input"
    read = reader(Configuration.load(overrides={"parser.timeout": "60", "http.agent.name": "x"}))
    for file in sorted(folder.glob("*.pdf")):
        texts = [folder / f"{file.name}{ending}" for ending in (".txt", "-sorted.txt")]
        expected = [words(text.read_text(encoding="utf-8", errors="replace")) for text in texts if text.is_file()]
        if not any(expected):
            continue
        parse = read(file)
        found = words(parse.text)
        share = max((each & found).total() / each.total() for each in expected if each)
        left = rejection(parse) or ("" if share >= _WORDS else f"{share:.1%} of the words")
        left += f": {_REASONS[file.name]}" if left and file.name in _REASONS else ""
        yield Case("PDFBox's texts", file.name, left)


def words(text: str) -> Counter[str]:
    """Return the count of each word of a text."""
    return Counter(text.replace("\ufeff", "").split())
