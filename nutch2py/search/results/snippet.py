"""Snippets: passages of a text with highlighted matches."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nutch2py.backends.analysis.analyzer import Analyzer, TextToken
from nutch2py.backends.analysis.compounds import COMPOUND_LANGUAGES
from nutch2py.backends.analysis.folding import fold_width
from nutch2py.backends.analysis.stemming import analysis_language
from nutch2py.backends.analysis.stopwords import get_stopwords
from nutch2py.backends.analysis.word_forms import FIRST_OTHER_SCRIPT, get_plain_letters, name_spans
from nutch2py.search.results.passages import select_passages
from nutch2py.support.bounded_cache import bounded_cache

_MAX_ANALYSED_CHARACTERS = 60_000  # of a text (Solr's hl.maxAnalyzedChars is 51,200)
_HIGHLIGHT_EXTRA_LENGTH = 40
SHORT_TEXT_LENGTH = 1_000
"""Characters: shorter texts are analysed completely."""
_SIGNED_NAME = re.compile("plusplu|shar|dotn|objectiv")  # the stem of C++, C#, .NET or Objective-C
_BLANK_BEFORE_PUNCTUATION = re.compile(r"(?<=[\w)\]\"'”’»])\s+(?=[.,;)\]](?:\s|$))")
_COMBINING_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489]")
_CHANGED_STARTS = frozenset({"sr", "ga", "id"})
"""Languages whose stemmers change the first letters of words: other letters, mutations, prefixes."""


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

    Passages are whole sentences where possible and do not repeat the ``title``. Function and question words are
    highlighted only when all terms are such words. Without a match they come from the
    start of the text. ``…`` separates passages and marks truncated sentences.
    """
    wanted = _without_filler_terms(analyzer, frozenset(terms), lang)
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
    wanted = _without_filler_terms(analyzer, frozenset(terms), lang)
    return _cut_snippet(text, 0, len(text), find_matches(analyzer, text, wanted, lang))


_filler_terms: weakref.WeakKeyDictionary[Analyzer, dict[str, frozenset[str]]] = weakref.WeakKeyDictionary()


def _without_filler_terms(analyzer: Analyzer, terms: frozenset[str], lang: str) -> frozenset[str]:
    """Return the terms that are no function or question words of a language; all terms when there is no other."""
    code = lang.strip().lower().replace("_", "-").partition("-")[0] if get_stopwords(lang) else "en"
    by_language = _filler_terms.setdefault(analyzer, {})
    fillers = by_language.get(code)
    if fillers is None:
        words = " ".join(sorted(get_stopwords(code)))
        fillers = by_language[code] = frozenset(analyzer.index_terms(words, code))
    return (terms - fillers) or terms


_REST_OF_WORD = r"[^\W_]*(?:\+\+|#|['’-][^\W_]+)*"


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

    Stems keep the first letters of their words, which may have accents: words are found in the text with plain letters.
    Other texts are analysed completely.
    """
    if len(text) < SHORT_TEXT_LENGTH or not _have_first_letters(wanted, text, analysis_language(lang)):
        yield from analyzer.tokens(text, lang, wanted)
        return
    known: dict[str, list[TextToken]] = {}
    folded = fold_width(text)
    plain = get_plain_letters().replace_in(folded)
    pattern = _ascii_prefixes_pattern(wanted) if plain.isascii() else _prefixes_pattern(wanted)
    spans = {match.span(): None for match in pattern.finditer(plain)}
    if not plain.isascii():
        spans |= dict.fromkeys(_iter_words_with(get_plain_letters().long_letters, plain))
    if analysis_language(lang) in COMPOUND_LANGUAGES and any(len(term) > 2 for term in wanted):
        spans |= dict.fromkeys(_iter_words_with(_parts_pattern(wanted), plain, inside=True))
    if any(_SIGNED_NAME.search(term) for term in wanted):
        spans |= {(start, end): None for start, end, _ in name_spans(folded)}
    for start, end in spans:
        word = folded[start:end]
        if word not in known:
            known[word] = [token for token in analyzer.tokens(word, lang) if not wanted.isdisjoint(token.terms)]
        for token in known[word]:
            yield TextToken(start + token.start, start + token.end, token.terms)


def _have_first_letters(wanted: frozenset[str], text: str, code: str) -> bool:
    """Return whether words with the terms start with the letters of their terms, in a text with plain letters."""
    if not all(term.isalnum() and max(term) < FIRST_OTHER_SCRIPT for term in wanted):
        return False
    is_ascii = all(map(str.isascii, wanted))
    return (is_ascii or _COMBINING_MARKS.search(text) is None) and (text.isascii() or code not in _CHANGED_STARTS)


def _iter_words_with(pattern: re.Pattern[str], text: str, inside: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the words with a match of a pattern; ``inside``: after their first letter, as in compounds."""
    for match in pattern.finditer(text):
        start, end = match.span()
        while start and text[start - 1].isalnum():
            start -= 1
        while end < len(text) and text[end].isalnum():
            end += 1
        if start < match.start() or not inside:
            yield start, end


@bounded_cache(maxsize=256, max_key_length=2_000, size=lambda terms: sum(map(len, terms)))
def _parts_pattern(wanted: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of the first letters of terms within a word."""
    return re.compile("|".join(sorted({term[:5] for term in wanted if len(term) > 2})), re.IGNORECASE)


@bounded_cache(maxsize=256, max_key_length=2_000, size=lambda terms: sum(map(len, terms)))
def _prefixes_pattern(wanted: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of words with the prefixes of the terms, for a text with plain letters."""
    return _compile_prefixes(wanted)


@bounded_cache(maxsize=256, max_key_length=2_000, size=lambda terms: sum(map(len, terms)))
def _ascii_prefixes_pattern(wanted: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern for an ASCII text, which finds the words faster."""
    return _compile_prefixes(wanted, re.ASCII)


def _compile_prefixes(wanted: frozenset[str], flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    prefixes = sorted({term[: 3 if len(term) > 4 else 2 if len(term) > 2 else 1] for term in wanted})
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(prefixes)}){_REST_OF_WORD}", re.IGNORECASE | flags)


def _cut_snippet(text: str, start: int, end: int, matches: Iterable[tuple[int, int, str]]) -> Snippet:
    """Return ``text[start:end]`` with collapsed white space and none before punctuation, and its highlights."""
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
    return _close_up_punctuation(Snippet("".join(pieces).rstrip(), tuple(moved)))


def _close_up_punctuation(snippet: Snippet) -> Snippet:
    """Return a snippet without the blanks before punctuation that stand where an element of the page ends."""
    text, highlights = snippet
    blanks = [match.span() for match in _BLANK_BEFORE_PUNCTUATION.finditer(text)]
    if not blanks:
        return snippet

    def moved(offset: int) -> int:
        return offset - sum(min(end, offset) - start for start, end in blanks if start < offset)

    kept = "".join(
        text[a:b]
        for a, b in zip([0, *(end for _, end in blanks)], [*(start for start, _ in blanks), None], strict=True)
    )
    return Snippet(kept, tuple((moved(start), moved(end)) for start, end in highlights))


def _fold_whitespace(text: str, blank_before: bool) -> str:
    words = " ".join(text.split())
    if not words:
        return " " if text and not blank_before else ""
    lead = " " if text[0].isspace() and not blank_before else ""
    return lead + words + (" " if text[-1].isspace() else "")
