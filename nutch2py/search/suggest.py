"""What is suggested while somebody types: words of the embedded index, the most frequent first, and titles of pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from nutch2py.document import clean_text
from nutch2py.search.searcher import EmbeddedSearcher

WORDS, TITLES = 6, 4
"""Suggestions of either kind at most."""
_LONGEST = 200  # characters of what was typed that are looked at; more of them are no beginning of a query
_TERMS = 12  # terms of the dictionary that are looked up for six words: some are written alike
_READ = 3  # documents that tell how a term is written
_TEXT = 20_000  # characters of each
_KEPT = 20_000  # beginnings and terms that are remembered
_LAST = re.compile(r"(?<![^\W_])([^\W_]+)$")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]")
_FIELDS = ("title", "content")


class Suggestions(NamedTuple):
    """``queries``: what was typed with its last word completed; ``pages``: title and URL."""

    queries: list[str]
    pages: list[tuple[str, str]]


class Suggester:
    """Suggests from one opened index, and remembers; used by one thread at a time.

    Terms come from the index's dictionary with their numbers of documents, so that a suggestion finds something. As the
    dictionary has stems, how a word is written is read in the documents that have it, once.
    """

    def __init__(self, searcher: EmbeddedSearcher) -> None:
        self._searcher = searcher
        self._index = searcher.index.searcher()
        self._documents = searcher.count()
        self._terms: dict[str, list[str]] = {}
        self._forms: dict[str, Counter[str]] = {}

    def is_of(self, searcher: EmbeddedSearcher) -> bool:
        """Tell whether this suggests from an index, as of its last commit that changed how many documents it has."""
        return searcher is self._searcher and searcher.count() == self._documents

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
        for term in self._terms_of(last):
            forms = self._written(term)
            word = max((form for form in forms if form.startswith(last)), key=lambda form: forms[form], default="")
            if word and word not in found:
                found.append(word)
            if len(found) > WORDS:
                break
        return found

    def _terms_of(self, last: str) -> list[str]:
        """Return terms that begin so, where none does those that begin a little shorter (``packagi``: ``packag``)."""
        kept = self._terms.get(last)
        if kept is None:
            counted: Counter[str] = Counter()
            folded = (self._searcher.analyzer.words(last) or [last])[-1] if not last.isascii() else last
            for start in dict.fromkeys((folded, *(last[:-cut] for cut in (1, 2, 3) if len(last) - cut > 2))):
                for field in _FIELDS:
                    counted.update(dict(self._index.terms_with_prefix(field, start, limit=_TERMS)))
                if counted:
                    break
            if len(self._terms) >= _KEPT:
                self._terms.clear()
            kept = self._terms[last] = [term for term, _ in counted.most_common(_TERMS)]
        return kept

    def _written(self, term: str) -> Counter[str]:
        """Return how a term is written in documents that have it."""
        kept = self._forms.get(term)
        if kept is None:
            if len(self._forms) >= _KEPT:
                self._forms.clear()
            kept = self._forms[term] = Counter(self._read(term))
        return kept

    def _read(self, term: str) -> Iterator[str]:
        if _UNSPACED.match(term):
            yield term
            return
        analyzer = self._searcher.analyzer
        begun = re.escape(term[: 3 if len(term) > 4 else 1]) if term.isascii() else r"[^\W\d_]"
        near = re.compile(rf"(?<![^\W_]){begun}[^\W_]*(?:['’][^\W_]+)*", re.IGNORECASE)
        for fields in self._searcher.near(term, 0, _READ):
            for name in _FIELDS:
                for text in _texts(fields.get(name, "")):
                    for match in near.finditer(text[:_TEXT]):
                        word = match.group().lower()
                        if analyzer.words(word) == [term]:
                            yield word

    def _titles(self, before: str, last: str, words: list[str]) -> list[tuple[str, str]]:
        """Return pages whose titles have the words before, and one that begins as the last."""
        said = [f"title:{word}" for word in re.findall(r"\w+", before)[:8]]
        begun = [f"title:{word}" for word in dict.fromkeys([last, *words])]
        _, hits, _ = self._searcher.search(f"{' '.join(said)} ({' OR '.join(begun)})", 0, 2 * TITLES)
        found: dict[str, str] = {}
        for hit in hits:
            title = " ".join(next(iter(_texts(hit.fields.get("title", ""))), "").split())
            url = next(iter(_texts(hit.fields.get("url", ""))), "")
            if title and url.startswith(("http://", "https://")):
                found.setdefault(title[:200], url)
        return [*found.items()][:TITLES]


def _texts(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value])]
