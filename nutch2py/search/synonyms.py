"""Synonyms: words that find each other, of a file in Solr's form (``index.synonyms.file``).

    car, automobile, motor car        each of them finds the others
    telly => television, TV           the first finds the others, and not itself

They are looked up when a query is asked: no index has to be made anew, and every index is asked alike. Words are
compared as they are found: ``cars`` in the file is ``car`` in a query. What stands in quotes has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice

from nutch2py.backends.analysis import Analyzer, Row, Unit
from nutch2py.backends.word_files import without_comments
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.query_language import And, Not, Or, Query, Some, Text

PROPERTY = "index.synonyms.file"
_MOST_WORDS = 8
_MOST_WAYS = 64  # of one word: a query stays small whatever the file says
Key = tuple[Row, ...]
Groups = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""What is written, and what it finds, of each line."""


def groups_of(conf: Configuration, text: str) -> Groups:
    """Return what the text of files says; ConfigurationError for a line that says nothing."""
    groups = []
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        left, arrow, right = line.partition("=>")
        written, found = _parts(left), _parts(right) if arrow else _parts(left)
        if line and (not written or len(found) < 2 - bool(arrow) or "=>" in right):
            name = conf.get_trimmed(PROPERTY)
            raise ConfigurationError(f"{PROPERTY}: line {number} of {name} is {line[:80]!r}: write a, b or a => b")
        if line:
            groups.append((written, found))
    return tuple(groups)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


class Synonyms:
    """What words find beside themselves, or instead, in an index with pages in ``languages`` (codes).

    Of what a word finds as much is kept as a query may have, so that a line of thousands takes no more than its words.
    """

    def __init__(self, groups: Groups, analyzer: Analyzer, languages: frozenset[str]) -> None:
        self._ways: dict[Key, dict[tuple[Row, ...], None]] = {}
        self._own = set[Key]()  # what finds itself, too
        self._longest = 0
        for written, found in groups:
            units = {each: analyzer.query_words(each, languages) for each in {*written, *found[:_MOST_WAYS]}}
            every = (way for each in found[:_MOST_WAYS] for way in _ways_of(analyzer, each, units[each], languages))
            ways = dict.fromkeys(islice(every, _MOST_WAYS))
            themselves = {*found}
            for each in written:
                for key in _keys(units[each]):
                    if len(key) <= _MOST_WORDS:
                        self._longest = max(self._longest, len(key))
                        self._add(key, ways)
                        self._own |= {key} if each in themselves else set()

    def _add(self, key: Key, ways: Iterable[tuple[Row, ...]]) -> None:
        """Let what is known by a key find more."""
        known = self._ways.setdefault(key, {})
        for way in ways:
            if len(known) == _MOST_WAYS:
                return
            known[way] = None

    def applied(self, units: list[Unit]) -> list[Unit]:
        """Return the words of a query's text with what they find; several that have a synonym together are one."""
        made: list[Unit] = []
        at = 0
        while at < len(units):
            size, ways = self._at(units, at)
            if size:
                made.append(Unit(tuple(dict.fromkeys(ways))[:_MOST_WAYS]))
            else:
                made.append(units[at])
            at += max(size, 1)
        return made

    def _at(self, units: Sequence[Unit], at: int) -> tuple[int, list[tuple[Row, ...]]]:
        """Return how many units from a place on have synonyms together, as many as can be, and these."""
        for size in range(min(self._longest, len(units) - at), 0, -1):
            some = units[at : at + size]
            keys = [key for key in _keys(some) if key in self._ways]
            if keys:
                own = [*_keys(some)] if self._own.intersection(keys) else []
                return size, [*own, *(way for key in keys for way in self._ways[key])]
        return 0, []

    def _has(self, units: Sequence[Unit]) -> bool:
        return len(units) <= self._longest and any(key in self._ways for key in _keys(units))

    def joined(self, query: Query, analyzer: Analyzer, languages: frozenset[str]) -> Query:
        """Return a query in which words that have a synonym together are one text."""
        if isinstance(query, Not):
            return Not(self.joined(query.part, analyzer, languages))
        if isinstance(query, (And, Or)):
            return type(query)(tuple(self.joined(part, analyzer, languages) for part in query.parts))
        if not isinstance(query, Some) or self._longest < 2:
            return query
        words = [analyzer.query_words(text.text, languages) for text in query.parts]
        texts: list[Text] = []
        at = 0
        while at < len(words):
            ends = range(min(len(words), at + self._longest), at + 1, -1)
            end = next((end for end in ends if self._has([unit for some in words[at:end] for unit in some])), at + 1)
            texts.append(Text(" ".join(text.text for text in query.parts[at:end])))
            at = end
        return texts[0] if len(texts) == 1 else Some(tuple(texts))


def _keys(units: Sequence[Unit]) -> dict[Key, None]:
    """Return by which words are known that stand side by side: their terms in each language."""
    most = max((len(unit.ways) for unit in units), default=0)
    return dict.fromkeys(
        tuple(row for unit in units for row in unit.ways[min(way, len(unit.ways) - 1)]) for way in range(most)
    )


def _ways_of(analyzer: Analyzer, text: str, units: list[Unit], languages: frozenset[str]) -> list[tuple[Row, ...]]:
    """Return by which rows a synonym, whose words are ``units``, is found: those of one, of several side by side."""
    if len(units) == 1:
        return [*units[0].ways]
    codes = ("en", *sorted(languages))
    return [(row,) for row in dict.fromkeys(tuple(analyzer.words(text, code)) for code in codes) if row]


@lru_cache(maxsize=4)
def synonyms(groups: Groups, analyzer: Analyzer, languages: frozenset[str]) -> Synonyms:
    """Return them, made once: planners come and go."""
    return Synonyms(groups, analyzer, languages)
