"""Snippets: passages of a text with highlighted matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nutch2py.backends.analysis.analyzer import Analyzer, TextToken
from nutch2py.backends.analysis.folding import fold_width
from nutch2py.search.results.passages import select_passages
from nutch2py.support.bounded_cache import bounded_cache

_MAX_ANALYSED_CHARACTERS = 60_000  # of a text (Solr's hl.maxAnalyzedChars is 51,200)
_HIGHLIGHT_EXTRA_LENGTH = 40
SHORT_TEXT_LENGTH = 1_000
"""Characters: shorter texts are analysed completely."""
_ACCENTED = "\u00c0-\u024f\u1e00-\u1eff"


class Snippet(NamedTuple):
    """A text and its highlights.

    Attributes:
        text: Plain text.
        highlights: Disjoint spans ``(start, end)`` of ``text``, in order.
    """

    text: str
    highlights: tuple[tuple[int, int], ...] = ()

    def highlight(self, before: str, after: str) -> str:
        """Return the text with ``before`` and ``after`` around each highlight."""
        pieces: list[str] = []
        at = 0
        for start, end in self.highlights:
            pieces += [self.text[at:start], before, self.text[start:end], after]
            at = end
        return "".join([*pieces, self.text[at:]])


def make_snippet(
    analyzer: Analyzer, text: str, terms: Iterable[str], length: int = 200, lang: str = "en", title: str = ""
) -> Snippet:
    """Return the best passages of ``text`` for ``terms`` on one line, about ``length`` characters.

    Passages are whole sentences where possible and do not repeat the ``title``. Without a match they come from the
    start of the text. ``…`` separates passages and marks truncated sentences.
    """
    wanted = frozenset(terms)
    analysed = text[:_MAX_ANALYSED_CHARACTERS]
    matches = find_matches(analyzer, analysed, wanted, lang) if wanted else []
    passages = select_passages(analysed, matches, length + (_HIGHLIGHT_EXTRA_LENGTH if matches else 0), title)
    pieces: list[str] = []
    highlights: list[tuple[int, int]] = []
    size = 0
    end = 0
    for passage in passages:
        between = ("…" if not _is_at_border(text, passage.start) else "") if not pieces else " … "
        if pieces and not text[end : passage.start].strip():
            between = " "
        part = _cut_snippet(analysed, passage.start, passage.end, matches)
        size += len(between)
        pieces += [between, part.text]
        highlights += [(a + size, b + size) for a, b in part.highlights]
        size += len(part.text)
        end = passage.end
    cut = passages and not passages[-1].is_complete
    return Snippet("".join([*pieces, "…" if cut else ""]), tuple(highlights))


def _is_at_border(text: str, start: int) -> bool:
    """Return whether a sentence or line may start at ``start``."""
    before = text[:start].rstrip(" \t\xa0")[-1:]
    return not before or before in "\n.!?…:。！？”\"')」』）" or not text[start : start + 1].islower()


def highlight_text(analyzer: Analyzer, text: str, terms: Iterable[str], lang: str = "en") -> Snippet:
    """Return a short text, such as a title, completely, with its highlights."""
    return _cut_snippet(text, 0, len(text), find_matches(analyzer, text, frozenset(terms), lang))


def find_matches(analyzer: Analyzer, text: str, wanted: frozenset[str], lang: str) -> list[tuple[int, int, str]]:
    """Return the matching words in order."""
    return sorted(
        (token.start, token.end, term)
        for token in _iter_candidate_tokens(analyzer, text, wanted, lang)
        for term in token.terms
        if term in wanted
    )


def _iter_candidate_tokens(analyzer: Analyzer, text: str, wanted: frozenset[str], lang: str) -> Iterator[TextToken]:
    """Yield words of ``text`` that may have one of the terms; of a long text only words with the prefix of a term.

    Stems keep the first letters of their words, which may have accents. Other texts are analysed completely.
    """
    if len(text) < SHORT_TEXT_LENGTH or not all(term.isascii() and term.isalnum() for term in wanted):
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
    """Return a pattern of words with the prefixes of the terms."""
    prefixes = {term[: 3 if len(term) > 4 else 2 if len(term) > 2 else 1] for term in wanted}
    either = "|".join("".join(f"[{letter}{_ACCENTED}]" for letter in prefix) for prefix in sorted(prefixes))
    return re.compile(rf"(?<![^\W_])(?:{either})[^\W_]*(?:['’][^\W_]+)*", re.IGNORECASE)


def _cut_snippet(text: str, start: int, end: int, matches: Iterable[tuple[int, int, str]]) -> Snippet:
    """Return ``text[start:end]`` with collapsed white space, and its highlights."""
    joined: list[tuple[int, int]] = []
    for a, b, _ in matches:
        if a >= start and b <= end:
            if joined and a <= joined[-1][1]:  # overlapping Chinese words and bigrams are joined
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
