"""SpellingCorrector: finds the words of an index that are near to a word which the index does not have.

Words are compared as people write them, although the index has stems: all edits of a typed word are analysed like a
page, and the index counts the documents of their terms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.analysis.stemming import MORE_STEMMER_NAMES, STEMMER_NAMES
from nutch2py.search.query.query_plan import Correction, IndexTerm
from nutch2py.search.results.search_results import field_values
from nutch2py.search.suggestions.homophones import iter_homophones
from nutch2py.search.suggestions.prefix_terms import MAX_TEXT_CHARACTERS
from nutch2py.search.suggestions.word_edits import edit_distance, iter_edits

_MIN_FREQUENCY_RATIO = 100  # of that similar word
_MIN_WORD_LENGTH, _MAX_WORD_LENGTH = 3, 40  # letters; a word of three letters may only lack one
_MIN_TWO_EDITS_LENGTH = 8  # letters
_MIN_FORM_LENGTH = 5  # letters of a word that may be a form of another one
_MAX_LANGUAGES = 3  # by whose rules edits are analysed first
_MAX_CORRECTIONS = 3  # of one word
_MAX_HOMOPHONE_LENGTH = 4  # characters of a Chinese word
_MIN_HOMOPHONE_RATIO = 5  # of the documents of the best homophone to those of the next one
_MAX_CHECKED = 5  # candidates of which documents are read
_SAMPLE_DOCUMENTS = 4  # documents of a term, read for the spelling of its words
_MAX_SIMILAR_DOCUMENTS = 15
_MAX_CACHED_WORDS = 10_000
_MAX_CACHED_TEXT = 64  # characters of a Chinese text whose homophones are cached
_MAX_SCORE_GAP = 3.0  # between the best candidate and others that are searched, too
_COST_WEIGHT = 5.0  # of an edit
_FREQUENCY_WEIGHT = 0.3  # of the logarithm of the number of documents
_UNSEEN_COST = 4.0  # of a word that the sampled documents do not have
CORRECTION_WEIGHT = 0.5
"""Weight of the best similar word next to the word as typed."""
_LETTERS = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPTS = re.compile("[\u0900-\u1dff\u2000-\U0003ffff]")  # with vowel signs, syllables, or without spaces
_SCRIPT_LANGUAGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("\u0370", "\u03ff", ("el",)),
    ("\u0400", "\u052f", ("ru", "sr")),
    ("\u0530", "\u058f", ("hy",)),
    ("\u0590", "\u05ff", ("yi",)),
    ("\u0600", "\u06ff", ("ar", "fa")),
)
_LATIN_LANGUAGES = (STEMMER_NAMES.keys() | MORE_STEMMER_NAMES.keys()) - {
    *("el", "ru", "ar", "ta", "hy", "yi", "fa", "hi", "ne")
}
_WORD = re.compile(r"(?<![\w\-])[^\W\d_]{3,64}(?![\w])")
_SPELLING_FIELDS = ("content", "title")


class SpellingIndex(Protocol):
    """The part of an index that spelling correction needs."""

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term, a field and a term."""

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""

    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with words that may differ from ``word`` by two edits."""


class _Candidate(NamedTuple):
    """A term with the words that have it; a higher score is better."""

    score: float
    term: str
    frequency: int
    words: tuple[str, ...]


class SpellingCorrector:
    """Corrects words for an index with pages in ``languages`` (codes), with a cache for one commit of the index."""

    def __init__(self, index: SpellingIndex, analyzer: Analyzer, languages: Iterable[str]) -> None:
        self._index, self._analyzer = index, analyzer
        self._languages = frozenset(languages) or frozenset({"en"})
        self._latin_codes: list[str] = []
        self._corrections: dict[tuple[str, int], tuple[Correction, ...]] = {}
        self._homophones: dict[str, str] = {}

    def find_corrections(self, word: str, frequency: int = 0) -> tuple[Correction, ...]:
        """Return words of the index that ``word`` was probably meant to be, the best first.

        They differ by one edit (a letter inserted, deleted or replaced, or two swapped), from eight letters on by two
        if none differs by one. Words with digits and words of scripts without spaces have none.

        Args:
            word: The word as typed.
            frequency: The number of documents with it; a known word needs a far more frequent similar word.

        """
        key = (word.lower(), frequency)
        found = self._corrections.get(key)
        if found is None:
            if len(self._corrections) >= _MAX_CACHED_WORDS:
                self._corrections.clear()
            found = self._corrections[key] = self._find(*key) if is_correctable(word) else ()
        return found

    def find_homophones(self, text: str) -> str:
        """Return a Chinese text with homophones for the words that the index does not know; "" if nothing is sure.

        A word of two to four characters is replaced where one homophone is in the index, or one in far more documents
        than the others.
        """
        found = self._homophones.get(text)
        if found is None:
            found = self._replace_homophones(text)
            if len(text) <= _MAX_CACHED_TEXT:
                if len(self._homophones) >= _MAX_CACHED_WORDS:
                    self._homophones.clear()
                self._homophones[text] = found
        return found

    def _replace_homophones(self, text: str) -> str:
        corrected = text
        for run in self._analyzer.chinese_words(text):
            counts = self._count(run)
            start = 0
            while start < len(run):
                end = start
                while end < len(run) and (not counts[end] or len(run[end]) == 1):
                    end += 1
                span = "".join(run[start:end])
                if 2 <= len(span) <= _MAX_HOMOPHONE_LENGTH and not all(counts[start:end]):
                    replaced = self._replace_word(span)
                    if not replaced:
                        return ""
                    corrected = corrected.replace(span, replaced, 1)
                start = end + 1
        return corrected if corrected != text else ""

    def _replace_word(self, span: str) -> str:
        """Return a run of unknown words with the longest part of it replaced that has a sure homophone, or ""."""
        for length in range(len(span), 1, -1):
            found: list[tuple[int, str]] = []
            for at in range(len(span) - length + 1):
                words = [*dict.fromkeys(iter_homophones(span[at : at + length]))]
                counted = zip(words, self._count(words), strict=True) if words else ()
                found += [(count, span[:at] + word + span[at + length :]) for word, count in counted if count]
            found.sort(reverse=True)
            if found:
                is_sure = len(found) == 1 or found[0][0] >= _MIN_HOMOPHONE_RATIO * found[1][0]
                return found[0][1] if is_sure else ""
        return ""

    def _find(self, word: str, frequency: int) -> tuple[Correction, ...]:
        first, others = self._languages_of(word)
        rejected = list[tuple[_Candidate, list[str]]]()
        best, codes = list[_Candidate](), first
        for codes in (first, others):
            candidates = self._find_near(word, codes)
            if frequency:
                limit = frequency * _MIN_FREQUENCY_RATIO
                candidates = [each for each in candidates if each.frequency >= limit]
            candidates.sort(key=lambda each: (-each.score, each.term))
            if best := self._check_best(candidates):
                break
            rejected += [(each, codes) for each in candidates[:_MAX_CHECKED]]
        if not best and not frequency:
            codes = [*first, *others]
            if len(word) >= _MIN_TWO_EDITS_LENGTH and not rejected:
                best = self._check_best(sorted(self._find_far(word, codes), key=lambda each: (-each.score, each.term)))
            best = best or self._find_forms(word, rejected)
        corrections = []
        for each in best:
            spelling = each.words[0]
            terms = (self._analyzer.index_terms(spelling, code) for code in codes)
            weight = CORRECTION_WEIGHT * math.exp((each.score - best[0].score) / 2)
            terms_of = dict.fromkeys((each.term, *(row[0] for row in terms if len(row) == 1)))
            corrections.append(Correction(spelling, tuple(terms_of), weight))
        return tuple(corrections)

    def _find_near(self, word: str, codes: Sequence[str]) -> list[_Candidate]:
        """Return the terms of the index that words with one edit have."""
        if not codes:
            return []
        costs: dict[str, float] = {}
        for edited, cost in iter_edits(word):
            if len(word) > _MIN_WORD_LENGTH or len(edited) > len(word):
                costs[edited] = min(cost, costs.get(edited, cost))
        words_by_term: dict[str, list[str]] = {}
        for code in codes:
            for edited, term in zip(costs, self._analyzer.word_terms([*costs], code), strict=True):
                if term:
                    words_by_term.setdefault(term, []).append(edited)
        terms = [*words_by_term]
        counts = self._count(terms)
        return [
            _make_candidate(term, count, {each: costs[each] for each in words_by_term[term]})
            for term, count in zip(terms, counts, strict=True)
            if count
        ]

    def _find_forms(self, word: str, rejected: Sequence[tuple[_Candidate, list[str]]]) -> list[_Candidate]:
        """Return the word of a page whose stem an edit has, for a form of it that the stemmer keeps apart.

        The edit is no word, but the typed one may be a form of that word: кошек of кошка.
        """
        for candidate, codes in rejected if len(word) >= _MIN_FORM_LENGTH else ():
            forms = Counter[str]()
            for fields in self._index.documents_with_term(candidate.term, _SAMPLE_DOCUMENTS):
                forms.update(each for each in _WORD.findall(_text_of(fields)) if each.startswith(word[:3]))
            for form in sorted(forms, key=lambda each: (-forms[each], each)):
                is_form = edit_distance(word, form, 3) <= 3
                if is_form and any(self._analyzer.index_terms(form, code) == [candidate.term] for code in codes):
                    return [candidate._replace(words=(form,))]
        return []

    def _find_far(self, word: str, codes: Sequence[str]) -> list[_Candidate]:
        """Return the terms of words in documents that differ from a word by two edits."""
        spellings = Counter[str]()
        for fields in self._index.similar_documents(word, _MAX_SIMILAR_DOCUMENTS):
            spellings.update({*_WORD.findall(_text_of(fields))})
        near = [each for each in spellings if each[0] == word[0] and edit_distance(word, each, 2) <= 2]
        words_by_term: dict[str, list[str]] = {}
        for each in near:
            for code in codes:
                for term in self._analyzer.index_terms(each, code)[:1]:
                    words_by_term.setdefault(term, []).append(each)
        terms = [*words_by_term]
        return [
            _make_candidate(term, count, dict.fromkeys(words_by_term[term], 2.0))
            for term, count in zip(terms, self._count(terms), strict=True)
            if count
        ]

    def _count(self, terms: list[str]) -> list[int]:
        """Return the number of documents with each term in the content, or else in the title."""
        counts = self._index.document_frequencies([(_SPELLING_FIELDS[0], term) for term in terms])
        if not any(counts):
            counts = self._index.document_frequencies([(_SPELLING_FIELDS[1], term) for term in terms])
        return counts

    def _languages_of(self, word: str) -> tuple[list[str], list[str]]:
        """Return the languages by whose rules a word's edits are analysed: the most frequent ones, and the others."""
        letter = next((each for each in word if each >= "\u0370"), "")
        for first, last, languages in _SCRIPT_LANGUAGES:
            if first <= letter <= last:
                known = [code for code in languages if code in self._languages]
                return known[:1] or self._rank_codes(self._languages)[:_MAX_LANGUAGES], known[1:]
        if not self._latin_codes:
            self._latin_codes = self._rank_codes(self._languages & _LATIN_LANGUAGES or self._languages)
        return self._latin_codes[:_MAX_LANGUAGES], self._latin_codes[_MAX_LANGUAGES:]

    def _rank_codes(self, codes: frozenset[str]) -> list[str]:
        """Return languages, those of most pages first if they are many."""
        ordered = sorted(codes)
        if len(ordered) <= _MAX_LANGUAGES:
            return ordered
        counts = self._index.document_frequencies([("exact", f"lang={code}") for code in ordered])
        return [code for _, code in sorted(zip(counts, ordered, strict=True), key=lambda each: (-each[0], each[1]))]

    def _check_best(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Return the best of sorted candidates that are words, without those far behind the best one."""
        checked: list[_Candidate] = []
        for each in candidates[:_MAX_CHECKED]:
            if checked and each.score < max(checked).score - _MAX_SCORE_GAP:
                break
            if (seen := self._check_spelling(each)) is not None:
                checked.append(seen)
        checked.sort(key=lambda each: (-each.score, each.term))
        return [each for each in checked if each.score >= checked[0].score - _MAX_SCORE_GAP][:_MAX_CORRECTIONS]

    def _check_spelling(self, candidate: _Candidate) -> _Candidate | None:
        """Return a candidate with the word that documents have; None if none of its words is one.

        An edit may have the stem of another word without being a word. Documents with the term are sampled; a word that
        they do not have may be in others.
        """
        pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, candidate.words))})(?![^\W_])")
        seen = Counter[str]()
        documents = self._index.documents_with_term(candidate.term, _SAMPLE_DOCUMENTS)
        for fields in documents:
            seen.update({*pattern.findall(_text_of(fields))})
        if seen:
            return candidate._replace(words=(max(candidate.words, key=lambda each: seen[each]),))
        if len(documents) < _SAMPLE_DOCUMENTS:
            return None
        return candidate._replace(score=candidate.score - _UNSEEN_COST)


def _make_candidate(term: str, count: int, costs: dict[str, float]) -> _Candidate:
    words = sorted(costs, key=lambda each: (costs[each], each))
    return _Candidate(_FREQUENCY_WEIGHT * math.log(count) - _COST_WEIGHT * costs[words[0]], term, count, tuple(words))


def is_correctable(word: str) -> bool:
    """Return whether a word is one that may be mistyped: letters of a script with spaces, neither short nor very long.

    >>> [is_correctable(word) for word in ("crwaler", "мосвка", "ab", "v20", "北京奥运汇")]
    [True, True, False, False, False]
    """
    return (
        _MIN_WORD_LENGTH <= len(word) <= _MAX_WORD_LENGTH
        and _LETTERS.fullmatch(word) is not None
        and _OTHER_SCRIPTS.search(word) is None
    )


def _text_of(fields: dict[str, Any]) -> str:
    """Return the title and the content of a document in lower case."""
    texts = (text[:MAX_TEXT_CHARACTERS] for name in ("title", "content") for text in field_values(fields, name))
    return "\n".join(texts).lower()
