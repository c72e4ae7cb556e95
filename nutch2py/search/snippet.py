"""Snippets: the part of a text that shows best why it was found, its words marked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nutch2py.backends.analysis import Analyzer

_ANALYSED = 60_000  # characters of a text that are looked through (Solr's hl.maxAnalyzedChars is 51,200)
_CONTEXT = 40


class Snippet(NamedTuple):
    """A piece of ``text`` and the parts of it to mark: ``marks`` are ``(start, end)``, in order and apart."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def marked(self, before: str, after: str) -> str:
        """Return the text with ``before`` and ``after`` around each marked part."""
        pieces: list[str] = []
        at = 0
        for start, end in self.marks:
            pieces += [self.text[at:start], before, self.text[start:end], after]
            at = end
        return "".join([*pieces, self.text[at:]])


def make_snippet(analyzer: Analyzer, text: str, terms: Iterable[str], length: int = 200, lang: str = "en") -> Snippet:
    """Return about ``length`` characters of ``text`` around most of ``terms``, on one line.

    The beginning is taken if none of them is in it.

    The best window holds the most different terms, then the most marks, then is the earliest.
    """
    wanted = frozenset(terms)
    looked_at = text[:_ANALYSED]
    found = _matches(analyzer, looked_at, wanted, lang) if wanted else []
    if not found:
        return _cut(looked_at, 0, length, ())
    best_rank, best_at = (0, 0), 0
    last = 0
    for first in range(len(found)):
        while last < len(found) and found[last][1] - found[first][0] <= length:
            last += 1
        inside = found[first : max(last, first + 1)]
        rank = (len({term for _, _, term in inside}), len(inside))
        if rank > best_rank:
            best_rank, best_at = rank, found[first][0]
    start = max(0, best_at - _CONTEXT)
    return _cut(looked_at, start, length + _CONTEXT, [(a, b) for a, b, _ in found])


def mark(analyzer: Analyzer, text: str, terms: Iterable[str], lang: str = "en") -> Snippet:
    """Return the whole of a short text, such as a title, with its marks."""
    return _cut(text, 0, len(text), [(a, b) for a, b, _ in _matches(analyzer, text, frozenset(terms), lang)])


def _matches(analyzer: Analyzer, text: str, wanted: frozenset[str], lang: str) -> list[tuple[int, int, str]]:
    return sorted(
        (token.start, token.end, term)
        for token in analyzer.tokens(text, lang)
        for term in token.terms
        if term in wanted
    )


def _cut(text: str, start: int, length: int, marks: Iterable[tuple[int, int]]) -> Snippet:
    """Cut at spaces where there are some near, fold white space into one blank, and move the marks along."""
    end = min(len(text), start + length)
    if start > 0:
        space = text.find(" ", start, start + _CONTEXT // 2)
        first_mark = min((a for a, _ in marks if a >= start), default=end)
        if 0 <= space < first_mark:
            start = space + 1
    if end < len(text):
        space = text.rfind(" ", max(start, end - _CONTEXT // 2), end)
        last_mark = max((b for _, b in marks if b <= end), default=0)
        if space > last_mark:
            end = space
    joined: list[tuple[int, int]] = []
    for a, b in sorted(marks):
        if a >= start and b <= end:
            if joined and a <= joined[-1][1]:  # overlapping words of Chinese and pairs of Kana become one
                joined[-1] = (joined[-1][0], max(b, joined[-1][1]))
            else:
                joined.append((a, b))
    prefix, suffix = ("…" if start else ""), ("…" if end < len(text) else "")
    pieces: list[str] = [prefix]
    size = len(prefix)
    moved: list[tuple[int, int]] = []
    at = start
    for a, b in [*joined, (end, end)]:
        between = _folded(text[at:a], blank_before=at == start or pieces[-1].endswith(" "))
        pieces.append(between)
        size += len(between)
        if a < b:
            word = _folded(text[a:b], blank_before=False)
            moved.append((size, size + len(word)))
            pieces.append(word)
            size += len(word)
        at = b
    return Snippet("".join(pieces).rstrip() + suffix, tuple(moved))


def _folded(text: str, blank_before: bool) -> str:
    words = " ".join(text.split())
    if not words:
        return " " if text and not blank_before else ""
    lead = " " if text[0].isspace() and not blank_before else ""
    return lead + words + (" " if text[-1].isspace() else "")
