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

from nutch2py.backends.analysis.analyzer import Analyzer, QueryWord, TermSequence
from nutch2py.backends.analysis.dictionaries import strip_comments
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.query.query_language import AndNode, NotNode, OrNode, QueryNode, TextNode, WordsNode

SYNONYMS_PROPERTY = "index.synonyms.file"
_MAX_WORDS = 8
_MAX_ALTERNATIVES = 64  # of one word: a query stays small whatever the file says
SynonymKey = tuple[TermSequence, ...]
SynonymGroups = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""What is written, and what it finds, of each line."""


def parse_synonyms(conf: Configuration, text: str) -> SynonymGroups:
    """Return what the text of files says; ConfigurationError for a line that says nothing."""
    groups = []
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        left, arrow, right = line.partition("=>")
        written, found = _split_terms(left), _split_terms(right) if arrow else _split_terms(left)
        if line and (not written or len(found) < 2 - bool(arrow) or "=>" in right):
            name = conf.get_trimmed(SYNONYMS_PROPERTY)
            raise ConfigurationError(
                f"{SYNONYMS_PROPERTY}: line {number} of {name} is {line[:80]!r}: write a, b or a => b"
            )
        if line:
            groups.append((written, found))
    return tuple(groups)


def _split_terms(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


class SynonymExpander:
    """What words find beside themselves, or instead, in an index with pages in ``languages`` (codes).

    Of what a word finds as much is kept as a query may have, so that a line of thousands takes no more than its words.
    """

    def __init__(self, groups: SynonymGroups, analyzer: Analyzer, languages: frozenset[str]) -> None:
        self._alternatives: dict[SynonymKey, dict[tuple[TermSequence, ...], None]] = {}
        self._self_matching = set[SynonymKey]()  # what finds itself, too
        self._max_key_length = 0
        for written, found in groups:
            units = {each: analyzer.query_words(each, languages) for each in {*written, *found[:_MAX_ALTERNATIVES]}}
            every = (
                way
                for each in found[:_MAX_ALTERNATIVES]
                for way in _synonym_alternatives(analyzer, each, units[each], languages)
            )
            ways = dict.fromkeys(islice(every, _MAX_ALTERNATIVES))
            themselves = {*found}
            for each in written:
                for key in _synonym_keys(units[each]):
                    if len(key) <= _MAX_WORDS:
                        self._max_key_length = max(self._max_key_length, len(key))
                        self._add_alternatives(key, ways)
                        self._self_matching |= {key} if each in themselves else set()

    def _add_alternatives(self, key: SynonymKey, ways: Iterable[tuple[TermSequence, ...]]) -> None:
        """Let what is known by a key find more."""
        known = self._alternatives.setdefault(key, {})
        for way in ways:
            if len(known) == _MAX_ALTERNATIVES:
                return
            known[way] = None

    def expand(self, units: list[QueryWord]) -> list[QueryWord]:
        """Return the words of a query's text with what they find; several that have a synonym together are one."""
        made: list[QueryWord] = []
        at = 0
        while at < len(units):
            size, ways = self._match_at(units, at)
            if size:
                made.append(QueryWord(tuple(dict.fromkeys(ways))[:_MAX_ALTERNATIVES]))
            else:
                made.append(units[at])
            at += max(size, 1)
        return made

    def _match_at(self, units: Sequence[QueryWord], at: int) -> tuple[int, list[tuple[TermSequence, ...]]]:
        """Return how many units from a place on have synonyms together, as many as can be, and these."""
        for size in range(min(self._max_key_length, len(units) - at), 0, -1):
            some = units[at : at + size]
            keys = [key for key in _synonym_keys(some) if key in self._alternatives]
            if keys:
                own = [*_synonym_keys(some)] if self._self_matching.intersection(keys) else []
                return size, [*own, *(way for key in keys for way in self._alternatives[key])]
        return 0, []

    def _has_synonym(self, units: Sequence[QueryWord]) -> bool:
        return len(units) <= self._max_key_length and any(key in self._alternatives for key in _synonym_keys(units))

    def join_words(self, query: QueryNode, analyzer: Analyzer, languages: frozenset[str]) -> QueryNode:
        """Return a query in which words that have a synonym together are one text."""
        if isinstance(query, NotNode):
            return NotNode(self.join_words(query.part, analyzer, languages))
        if isinstance(query, (AndNode, OrNode)):
            return type(query)(tuple(self.join_words(part, analyzer, languages) for part in query.parts))
        if not isinstance(query, WordsNode) or self._max_key_length < 2:
            return query
        words = [analyzer.query_words(text.text, languages) for text in query.parts]
        texts: list[TextNode] = []
        at = 0
        while at < len(words):
            ends = range(min(len(words), at + self._max_key_length), at + 1, -1)
            end = next(
                (end for end in ends if self._has_synonym([unit for some in words[at:end] for unit in some])), at + 1
            )
            texts.append(TextNode(" ".join(text.text for text in query.parts[at:end])))
            at = end
        return texts[0] if len(texts) == 1 else WordsNode(tuple(texts))


def _synonym_keys(units: Sequence[QueryWord]) -> dict[SynonymKey, None]:
    """Return by which words are known that stand side by side: their terms in each language."""
    most = max((len(unit.alternatives) for unit in units), default=0)
    return dict.fromkeys(
        tuple(row for unit in units for row in unit.alternatives[min(way, len(unit.alternatives) - 1)])
        for way in range(most)
    )


def _synonym_alternatives(
    analyzer: Analyzer, text: str, units: list[QueryWord], languages: frozenset[str]
) -> list[tuple[TermSequence, ...]]:
    """Return by which rows a synonym, whose words are ``units``, is found: those of one, of several side by side."""
    if len(units) == 1:
        return [*units[0].alternatives]
    codes = ("en", *sorted(languages))
    return [(row,) for row in dict.fromkeys(tuple(analyzer.index_terms(text, code)) for code in codes) if row]


@lru_cache(maxsize=4)
def get_synonym_expander(groups: SynonymGroups, analyzer: Analyzer, languages: frozenset[str]) -> SynonymExpander:
    """Return them, made once: planners come and go."""
    return SynonymExpander(groups, analyzer, languages)
