"""Snippets: the part of a text that shows best why it was found, its words marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nutch2py.backends.analysis.analyzer import Analyzer, TextToken
from nutch2py.backends.analysis.folding import fold_width
from nutch2py.search.results.passages import select_passages
from nutch2py.support.bounded_cache import bounded_cache

_MAX_ANALYSED_CHARACTERS = 60_000  # characters of a text that are looked through (Solr's hl.maxAnalyzedChars is 51,200)
_HIGHLIGHT_EXTRA_LENGTH = 40
_SHORT_TEXT_LENGTH = 1_000  # characters: texts up to there are analysed whole
_ACCENTED = "\u00c0-\u024f\u1e00-\u1eff"


class Snippet(NamedTuple):
    """A piece of ``text`` and the parts of it to mark: ``highlights`` are ``(start, end)``, in order and apart."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()

    def highlight(self, before: str, after: str) -> str:
        """Return the text with ``before`` and ``after`` around each marked part."""
        pieces: list[str] = []
        at = 0
        for start, end in self.highlights:
            pieces += [self.text[at:start], before, self.text[start:end], after]
            at = end
        return "".join([*pieces, self.text[at:]])


def make_snippet(
    analyzer: Analyzer, text: str, terms: Iterable[str], length: int = 200, lang: str = "en", title: str = ""
) -> Snippet:
    """Return the best passages of ``text`` for ``terms``, about ``length`` characters on one line.

    They are whole sentences where they can be, do not say the ``title`` again, and are taken from the text's beginning
    when none of the terms is in it. Between two passages, and where a sentence is cut, stands ``…``.
    """
    wanted = frozenset(terms)
    looked_at = text[:_MAX_ANALYSED_CHARACTERS]
    found = _find_matches(analyzer, looked_at, wanted, lang) if wanted else []
    passages = select_passages(looked_at, found, length + (_HIGHLIGHT_EXTRA_LENGTH if found else 0), title)
    pieces: list[str] = []
    marks: list[tuple[int, int]] = []
    size = 0
    end = 0
    for passage in passages:
        between = ("…" if not _is_at_border(text, passage.start) else "") if not pieces else " … "
        if pieces and not text[end : passage.start].strip():
            between = " "
        shown = _cut_snippet(looked_at, passage.start, passage.end, found)
        size += len(between)
        pieces += [between, shown.text]
        marks += [(a + size, b + size) for a, b in shown.highlights]
        size += len(shown.text)
        end = passage.end
    cut = passages and not passages[-1].is_complete
    return Snippet("".join([*pieces, "…" if cut else ""]), tuple(marks))


def _is_at_border(text: str, start: int) -> bool:
    """Tell whether a sentence or line may begin at ``start``."""
    before = text[:start].rstrip(" \t\xa0")[-1:]
    return not before or before in "\n.!?…:。！？”\"')」』）" or not text[start : start + 1].islower()


def highlight_text(analyzer: Analyzer, text: str, terms: Iterable[str], lang: str = "en") -> Snippet:
    """Return the whole of a short text, such as a title, with its marks."""
    return _cut_snippet(text, 0, len(text), _find_matches(analyzer, text, frozenset(terms), lang))


def _find_matches(analyzer: Analyzer, text: str, wanted: frozenset[str], lang: str) -> list[tuple[int, int, str]]:
    """Return where the words stand, in order."""
    return sorted(
        (token.start, token.end, term)
        for token in _iter_candidate_tokens(analyzer, text, wanted, lang)
        for term in token.terms
        if term in wanted
    )


def _iter_candidate_tokens(analyzer: Analyzer, text: str, wanted: frozenset[str], lang: str) -> Iterator[TextToken]:
    """Yield the words of ``text`` that may be among the terms: of a long text only those that begin as one does.

    Stems keep the first letters of their words; accents may stand on any of them. Everything else is analysed whole.
    """
    if len(text) < _SHORT_TEXT_LENGTH or not all(term.isascii() and term.isalnum() for term in wanted):
        yield from analyzer.tokens(text, lang)
        return
    known: dict[str, list[TextToken]] = {}
    for match in _prefixes_pattern(wanted).finditer(fold_width(text)):
        start, word = match.start(), match.group()
        if word not in known:
            known[word] = [token for token in analyzer.tokens(word, lang) if not wanted.isdisjoint(token.terms)]
        for token in known[word]:
            yield TextToken(start + token.start, start + token.end, token.terms)


@bounded_cache(maxsize=256, max_key_length=2_000, size=lambda terms: sum(map(len, terms)))
def _prefixes_pattern(wanted: frozenset[str]) -> re.Pattern[str]:
    """Return what finds words that begin as the terms do."""
    begun = {term[: 3 if len(term) > 4 else 2 if len(term) > 2 else 1] for term in wanted}
    either = "|".join("".join(f"[{letter}{_ACCENTED}]" for letter in start) for start in sorted(begun))
    return re.compile(rf"(?<![^\W_])(?:{either})[^\W_]*(?:['’][^\W_]+)*", re.IGNORECASE)


def _cut_snippet(text: str, start: int, end: int, marks: Iterable[tuple[int, int, str]]) -> Snippet:
    """Return ``text[start:end]`` with white space folded into one blank, and the marks moved along."""
    joined: list[tuple[int, int]] = []
    for a, b, _ in marks:
        if a >= start and b <= end:
            if joined and a <= joined[-1][1]:  # overlapping words of Chinese and pairs of Kana become one
                joined[-1] = (joined[-1][0], max(b, joined[-1][1]))
            else:
                joined.append((a, b))
    pieces: list[str] = []
    size = 0
    moved: list[tuple[int, int]] = []
    at = start
    for a, b in [*joined, (end, end)]:
        between = _fold_whitespace(text[at:a], blank_before=at == start or pieces[-1].endswith(" "))
        pieces.append(between)
        size += len(between)
        if a < b:
            word = _fold_whitespace(text[a:b], blank_before=False)
            moved.append((size, size + len(word)))
            pieces.append(word)
            size += len(word)
        at = b
    return Snippet("".join(pieces).rstrip(), tuple(moved))


def _fold_whitespace(text: str, blank_before: bool) -> str:
    words = " ".join(text.split())
    if not words:
        return " " if text and not blank_before else ""
    lead = " " if text[0].isspace() and not blank_before else ""
    return lead + words + (" " if text[-1].isspace() else "")
