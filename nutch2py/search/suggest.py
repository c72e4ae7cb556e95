"""What is suggested while somebody types: words of the index, the most frequent first, and titles of pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from nutch2py.backends.analysis import Analyzer
from nutch2py.document import clean_text
from nutch2py.search.beginnings import FIELDS, Beginning, words_beginning
from nutch2py.search.results import Found, first_of, texts_of, unturned

WORDS, TITLES = 6, 4
"""Suggestions of either kind at most."""
_LONGEST = 200  # characters of what was typed that are looked at; more of them are no beginning of a query
_WORD = 40  # letters of a word that is suggested
_TERMS = 12  # terms of the dictionary that are looked up for six words: some are written alike
_READ = 3  # documents that tell how a term is written
_TEXT = 20_000  # characters of each
_KEPT = 20_000  # beginnings and terms that are remembered
_LAST = re.compile(r"(?<![^\W_])([^\W_]+)$")
_ANY_WORD = re.compile(r"(?<![^\W_])[^\W\d_][^\W_]*(?:['’][^\W_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]")


class Searcher(Protocol):
    """What is asked of an index."""

    @property
    def analyzer(self) -> Analyzer:
        """What cuts words."""

    def search(self, query: str, start: int, rows: int) -> tuple[int, list[Found], frozenset[str]]:
        """Return hits."""

    def count_matching(self, query: str) -> int:
        """Return how many documents match."""

    def beginning(self, start: str, most: int) -> list[Beginning]:
        """Return terms that begin so, those of most pages first; how they are written as far as that is known."""

    def having(self, term: str, most: int) -> list[dict[str, Any]]:
        """Return documents with a term."""


class Remembered:
    """What an index has answered: terms by beginning, and how each is written. Threads may share it."""

    def __init__(self) -> None:
        self.terms: dict[str, list[str]] = {}
        self.forms: dict[str, Counter[str]] = {}


class Suggestions(NamedTuple):
    """``queries``: what was typed with its last word completed; ``pages``: title and URL."""

    queries: list[str]
    pages: list[tuple[str, str]]


class Suggester:
    """Suggests from one opened index, and remembers; used by one thread at a time.

    Terms come from the index with their numbers of documents, so that a suggestion finds something. As they are stems,
    how a word is written is read in documents that have it, once.
    """

    def __init__(self, searcher: Searcher, remembered: Remembered | None = None) -> None:
        self._searcher = searcher
        remembered = remembered or Remembered()
        self._terms, self._forms = remembered.terms, remembered.forms

    def suggest(self, typed: str) -> Suggestions:
        """Return what may be meant by the beginning of a query; nothing for one without a last word."""
        typed = clean_text(typed).lstrip()
        match = _LAST.search(typed)
        if match is None or len(typed) > _LONGEST:
            return Suggestions([], [])
        before, last = typed[: match.start()], match[1].lower()
        if len(last) < 2 and not _UNSPACED.match(last):
            return Suggestions([], [])
        words = self._completions(last)
        queries = [f"{before}{word}" for word in words if f"{before}{word}" != typed]
        if before.strip() and queries:
            queries = [each for each in queries if self._searcher.count_matching(each)]
        return Suggestions(queries[:WORDS], self._titles(before, last, words))

    def _completions(self, last: str) -> list[str]:
        """Return words that begin so, those of most documents first."""
        found = []
        starts = (last, self._searcher.analyzer.folded(last))  # 軟 begins 软件, too
        for term in self._terms_of(last):
            forms = self._written(term)
            fitting = (form for form in forms if form.startswith(starts))
            word = min(fitting, key=lambda form: (-forms[form], len(form), form), default="")
            if word and word not in found and len(word) <= _WORD:
                found.append(word)
            if len(found) > WORDS:
                break
        return found

    def _terms_of(self, last: str) -> list[str]:
        """Return terms that begin so, where none does those that begin a little shorter (``packagi``: ``packag``)."""
        kept = self._terms.get(last)
        if kept is None:
            found: list[Beginning] = []
            folded = (self._searcher.analyzer.words(last) or [last])[-1] if not last.isascii() else last
            for start in dict.fromkeys((folded, *(last[:-cut] for cut in (1, 2, 3) if len(last) - cut > 2))):
                if found := self._searcher.beginning(start, _TERMS):
                    break
            for each in found:
                if each.written:
                    self._keep(each.term, each.written)
            if len(self._terms) >= _KEPT:
                self._terms.clear()
            kept = self._terms[last] = [each.term for each in found]
        return kept

    def _keep(self, term: str, written: Counter[str]) -> Counter[str]:
        if len(self._forms) >= _KEPT:
            self._forms.clear()
        return self._forms.setdefault(term, written)

    def _written(self, term: str) -> Counter[str]:
        """Return how a term is written in documents that have it."""
        kept = self._forms.get(term)
        return self._keep(term, Counter(self._read(term))) if kept is None else kept

    def _read(self, term: str) -> Iterator[str]:
        if _UNSPACED.match(term):
            yield term
            return
        analyzer = self._searcher.analyzer
        near = words_beginning(term[: 3 if len(term) > 4 else 1]) if term.isascii() else _ANY_WORD
        for fields in self._searcher.having(term, _READ):
            lang = first_of(fields, "lang") or "en"
            for name in FIELDS:
                for text in texts_of(fields, name):
                    for match in near.finditer(text[:_TEXT]):
                        word = match.group().lower()
                        if analyzer.words(word, lang) == [term]:
                            yield word

    def _titles(self, before: str, last: str, words: list[str]) -> list[tuple[str, str]]:
        """Return pages whose titles have the words before, and one that begins as the last."""
        said = [f"title:{word}" for word in re.findall(r"\w+", before)[:8]]
        begun = [f"title:{word}" for word in dict.fromkeys([last, *words])]
        _, hits, _ = self._searcher.search(f"{' '.join(said)} ({' OR '.join(begun)})", 0, 2 * TITLES)
        found: dict[str, str] = {}
        for hit in hits:
            title = " ".join(unturned(first_of(hit.fields, "title")).split())
            url = first_of(hit.fields, "url")
            if title and url.startswith(("http://", "https://")):
                found.setdefault(title[:200], url)
        return [*found.items()][:TITLES]
