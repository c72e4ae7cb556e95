"""Suggestions while typing: completions from the index, the most frequent first, and titles of pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, NamedTuple, Protocol

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.analysis.word_forms import FIRST_OTHER_SCRIPT, get_plain_letters
from nutch2py.records.document import clean_text
from nutch2py.search.results.search_results import ScoredDocument, field_values, first_value, strip_bidi_controls
from nutch2py.search.suggestions.prefix_terms import MAX_TEXT_CHARACTERS, SUGGEST_FIELDS, PrefixTerm, start_pattern

MAX_QUERY_SUGGESTIONS, MAX_TITLE_SUGGESTIONS = 6, 4
"""Limits of suggested queries and titles."""
_MAX_PREFIX_LENGTH = 200  # characters; a longer input gets no suggestions
_MAX_WORD_LENGTH = 40  # letters of a suggested word
_MAX_TERMS = 12  # terms read for six words, since some have the same spelling
_MAX_ENDING, _MIN_STEM = 7, 3  # letters that a stem may lack, and has
_MAX_COMPLETED_STARTS = 3  # completions of the last but one word
_SAMPLE_DOCUMENTS = 5  # documents read for the spelling of a term
_STEM_DOCUMENTS = 20  # documents read for the words with a stem that is shorter than what is typed
_MAX_CACHE_ENTRIES = 20_000  # cached prefixes and terms
_LAST_WORD = re.compile(r"(?<![^\W_])([^\W_]+)$")
_SIGNED_NAME_START = re.compile(r"(?<![\w.+#])(?:[A-Za-z][+#]{1,2}|\.[nN][eE]?[tT]?)$")
_ANY_WORD = re.compile(r"(?<![^\W_])[^\W\d_][^\W_]*(?:['’][^\W_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]")


class SuggestionIndex(Protocol):
    """The part of an index that suggestions need."""

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of the index."""

    def find_documents(self, query: str, rows: int) -> list[ScoredDocument]:
        """Return the best matching documents."""

    def count_matches(self, query: str) -> int:
        """Return the number of matching documents."""

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return terms with a prefix, those of most pages first, with their spellings as far as known."""

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term."""


class SuggestionCache:
    """Cache of an index's terms by prefix and spellings by term. Threads may share it."""

    def __init__(self) -> None:
        self.terms_by_prefix: dict[str, list[str]] = {}
        self.spellings_by_term: dict[str, Counter[str]] = {}


class Suggestions(NamedTuple):
    """``queries``: the input with its last word completed; ``pages``: title and URL."""

    queries: list[str]
    pages: list[tuple[str, str]]


class Suggester:
    """Suggests from one opened index, with a cache; one thread at a time uses it.

    Terms come from the index with their numbers of documents, so that every suggestion has matches. Terms are stems, so
    their spelling is read from documents once.
    """

    def __init__(self, index: SuggestionIndex, cache: SuggestionCache | None = None) -> None:
        self._index = index
        cache = cache or SuggestionCache()
        self._terms_by_prefix, self._spellings_by_term = cache.terms_by_prefix, cache.spellings_by_term

    def suggest(self, prefix: str) -> Suggestions:
        """Return suggestions for an input; none when it does not end with a word."""
        prefix = clean_text(prefix).lstrip()
        if len(prefix) > _MAX_PREFIX_LENGTH:
            return Suggestions([], [])
        if name := _SIGNED_NAME_START.search(prefix):
            names = self._complete_name(prefix[: name.start()], name.group())
            return Suggestions([each for each in names if each != prefix], [])
        match = _LAST_WORD.search(prefix)
        if match is None:
            return Suggestions([], [])
        before, last = prefix[: match.start()], match[1].lower()
        if len(last) < 2 and not _UNSPACED.match(last):
            return Suggestions([], [])
        words = self._complete_word(last)
        if not words and _UNSPACED.match(last):
            words = self._complete_run(last)
        queries = [f"{before}{word}" for word in words if f"{before}{word}" != prefix]
        if before.strip() and queries:
            queries = self._match_all(before, words) or self._complete_both(before, words)
        return Suggestions(queries[:MAX_QUERY_SUGGESTIONS], self._find_titles(before, last, words))

    def _match_all(self, before: str, words: list[str]) -> list[str]:
        """Return the queries with one of ``words`` after ``before`` that match documents with all their words."""
        # the completed word must match even where it is a function word
        return [f"{before}{word}" for word in words if self._index.count_matches(f"{before}+{word}")]

    def _complete_both(self, before: str, words: list[str]) -> list[str]:
        """Return queries whose last but one word is completed, too: ``windows update`` for ``win upd``."""
        earlier = _LAST_WORD.search(before.rstrip())
        if earlier is None or len(earlier[1]) < 2:
            return []
        starts = self._complete_word(earlier[1].lower())[:_MAX_COMPLETED_STARTS]
        head, gap = before[: earlier.start()], before[earlier.end() :]
        return [
            query for start in starts for query in self._match_all(f"{head}{start}{gap}", words[:_MAX_COMPLETED_STARTS])
        ]

    def _complete_name(self, before: str, start: str) -> list[str]:
        """Return queries with the names with signs that start alike: ``C++`` for ``C+``."""
        names = [".net"] if start.startswith(".") else [f"{start[0]}{signs}" for signs in ("++", "#")]
        return [f"{before}{name}" for name in self._keep_known(names, start) if name != start]

    def _keep_known(self, names: list[str], start: str) -> list[str]:
        fitting = (name for name in names if name.lower().startswith(start.lower()))
        return [name for name in fitting if self._index.count_matches(name)]

    def _complete_run(self, last: str) -> list[str]:
        """Return a run of words without spaces with its last word completed: 机器学习 for 机器学."""
        terms = self._index.analyzer.index_terms(last)
        final = terms[-1] if terms else ""
        if not final or final == last or not self._index.analyzer.fold(last).endswith(final):
            return []
        head = last[: len(last) - len(final)]
        completed = (f"{head}{word}" for word in self._complete_word(final))
        return [run for run in completed if run != last and self._index.count_matches(f'"{run}"')]

    def _complete_word(self, last: str) -> list[str]:
        """Return completions of a word, those of most documents first."""
        completions = list[str]()
        starts = (last, self._index.analyzer.fold(last))  # 軟 is a prefix of 软件, too
        # The term of a word may be shorter than what is typed: transact for transactio.
        stems = (last[:-cut] for cut in range(1, _MAX_ENDING + 1) if len(last) - cut >= _MIN_STEM)
        for term in chain(self._find_terms(last), stems if last.isalpha() and not _UNSPACED.match(last) else ()):
            if completions and len(term) < len(last):
                break
            forms = self._spellings_of(term, _SAMPLE_DOCUMENTS if len(term) >= len(last) else _STEM_DOCUMENTS)
            fitting = (form for form in forms if form.startswith(starts))
            word = min(fitting, key=lambda form: (-forms[form], len(form), form), default="")
            if word and word not in completions and len(word) <= _MAX_WORD_LENGTH:
                completions.append(word)
            if len(completions) > MAX_QUERY_SUGGESTIONS:
                break
        return completions

    def _find_terms(self, last: str) -> list[str]:
        """Return terms with a prefix, or else with a shorter one (``packag`` for ``packagi``)."""
        kept = self._terms_by_prefix.get(last)
        if kept is None:
            prefix_terms: list[PrefixTerm] = []
            folded = (self._index.analyzer.index_terms(last) or [last])[-1] if not last.isascii() else last
            for start in dict.fromkeys((folded, *(last[:-cut] for cut in (1, 2, 3) if len(last) - cut > 2))):
                if prefix_terms := self._index.prefix_terms(start, _MAX_TERMS):
                    break
            for each in prefix_terms:
                if each.spellings:
                    self._cache_spellings(each.term, each.spellings)
            if len(self._terms_by_prefix) >= _MAX_CACHE_ENTRIES:
                self._terms_by_prefix.clear()
            kept = self._terms_by_prefix[last] = [each.term for each in prefix_terms]
        return kept

    def _cache_spellings(self, term: str, spellings: Counter[str]) -> Counter[str]:
        if len(self._spellings_by_term) >= _MAX_CACHE_ENTRIES:
            self._spellings_by_term.clear()
        return self._spellings_by_term.setdefault(term, spellings)

    def _spellings_of(self, term: str, documents: int) -> Counter[str]:
        """Return the spellings of a term in a number of documents that have it."""
        key = term if documents == _SAMPLE_DOCUMENTS else f"{term} {documents}"
        kept = self._spellings_by_term.get(key)
        return self._cache_spellings(key, Counter(self._iter_spellings(term, documents))) if kept is None else kept

    def _iter_spellings(self, term: str, documents: int) -> Iterator[str]:
        if _UNSPACED.match(term):
            yield term
            return
        start = term[: 3 if len(term) > 4 else 1]
        # Stems keep the first letters of their words, which may have accents.
        is_found_by_start = max(start) < FIRST_OTHER_SCRIPT
        pattern = start_pattern(start) if is_found_by_start else _ANY_WORD
        words_by_lang: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for fields in self._index.documents_with_term(term, documents):
            words = words_by_lang[first_value(fields, "lang") or "en"]
            for name in SUGGEST_FIELDS:
                for value in field_values(fields, name):
                    text = value[:MAX_TEXT_CHARACTERS]
                    plain = get_plain_letters().replace_in(text) if is_found_by_start else text
                    words.update(text[match.start() : match.end()].lower() for match in pattern.finditer(plain))
        for lang, words in words_by_lang.items():
            terms = self._index.analyzer.word_terms([*words], lang) if words else []
            for (word, count), found in zip(words.items(), terms, strict=True):
                if found == term:
                    yield from repeat(word, count)

    def _find_titles(self, before: str, last: str, words: list[str]) -> list[tuple[str, str]]:
        """Return pages whose titles have the words before the last one and a completion of the last."""
        required = [f"title:{word}" for word in re.findall(r"\w+", before)[:8]]
        completed = [f"title:{word}" for word in dict.fromkeys([last, *words])]
        query = f"{' '.join(required)} ({' OR '.join(completed)})"
        urls_by_title: dict[str, str] = {}
        for hit in self._index.find_documents(query, 2 * MAX_TITLE_SUGGESTIONS):
            title = " ".join(strip_bidi_controls(first_value(hit.fields, "title")).split())
            url = first_value(hit.fields, "url")
            if title and url.startswith(("http://", "https://")):
                urls_by_title.setdefault(title[:200], url)
        return [*urls_by_title.items()][:MAX_TITLE_SUGGESTIONS]
