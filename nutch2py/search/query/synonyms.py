"""Synonyms of query words, from files in Solr's format (``index.synonyms.file``).

    car, automobile, motor car        each of them matches the others
    telly => television, TV           the first matches the others, and not itself

Synonyms are applied to queries: no index must be rebuilt, and they work with every index. Words are compared by their
terms: ``cars`` in the file applies to ``car`` in a query. Quoted words have no synonyms.
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
_MAX_ALTERNATIVES = 64  # of one word; bounds the size of a query
SynonymKey = tuple[TermSequence, ...]
SynonymGroups = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""Words on the left side and words that they match, of each line."""


def parse_synonyms(conf: Configuration, text: str) -> SynonymGroups:
    """Return the synonyms in the text of files; raise ConfigurationError for an invalid line."""
    groups = []
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        left, arrow, right = line.partition("=>")
        written, targets = _split_terms(left), _split_terms(right) if arrow else _split_terms(left)
        if line and (not written or len(targets) < 2 - bool(arrow) or "=>" in right):
            name = conf.get_trimmed(SYNONYMS_PROPERTY)
            raise ConfigurationError(
                f"{SYNONYMS_PROPERTY}: line {number} of {name} is {line[:80]!r}: write a, b or a => b"
            )
        if line:
            groups.append((written, targets))
    return tuple(groups)


def _split_terms(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


class SynonymExpander:
    """Expands the words of queries by synonyms, for an index with pages in ``languages`` (codes).

    At most ``_MAX_ALTERNATIVES`` of a word are kept, so that memory stays bounded for long lines.

    Attributes:
        alternatives: What each written key also matches, in the order of the lines.
    """

    def __init__(self, groups: SynonymGroups, analyzer: Analyzer, languages: frozenset[str]) -> None:
        self.alternatives: dict[SynonymKey, dict[tuple[TermSequence, ...], None]] = {}
        self._self_matching = set[SynonymKey]()  # keys that also match themselves
        self._max_key_length = 0
        for written, targets in groups:
            units = {each: analyzer.query_words(each, languages) for each in {*written, *targets[:_MAX_ALTERNATIVES]}}
            every = (
                alternative
                for each in targets[:_MAX_ALTERNATIVES]
                for alternative in _synonym_alternatives(analyzer, each, units[each], languages)
            )
            alternatives = dict.fromkeys(islice(every, _MAX_ALTERNATIVES))
            self_matching = {*targets}
            for each in written:
                for key in _synonym_keys(units[each]):
                    if len(key) <= _MAX_WORDS:
                        self._max_key_length = max(self._max_key_length, len(key))
                        self._add_alternatives(key, alternatives)
                        self._self_matching |= {key} if each in self_matching else set()

    def _add_alternatives(self, key: SynonymKey, alternatives: Iterable[tuple[TermSequence, ...]]) -> None:
        """Add alternatives to a key, up to the limit."""
        known = self.alternatives.setdefault(key, {})
        for alternative in alternatives:
            if len(known) == _MAX_ALTERNATIVES:
                return
            known[alternative] = None

    def expand(self, units: list[QueryWord]) -> list[QueryWord]:
        """Return the words of a query's text with their synonyms; several words with a common synonym become one."""
        expanded: list[QueryWord] = []
        at = 0
        while at < len(units):
            size, alternatives = self._match_at(units, at)
            if size:
                expanded.append(QueryWord(tuple(dict.fromkeys(alternatives))[:_MAX_ALTERNATIVES]))
            else:
                expanded.append(units[at])
            at += max(size, 1)
        return expanded

    def _match_at(self, units: Sequence[QueryWord], at: int) -> tuple[int, list[tuple[TermSequence, ...]]]:
        """Return the largest number of words from an index on that have synonyms together, and the synonyms."""
        for size in range(min(self._max_key_length, len(units) - at), 0, -1):
            some = units[at : at + size]
            keys = [key for key in _synonym_keys(some) if key in self.alternatives]
            if keys:
                own = [*_synonym_keys(some)] if self._self_matching.intersection(keys) else []
                return size, [*own, *(each for key in keys for each in self.alternatives[key])]
        return 0, []

    def _has_synonym(self, units: Sequence[QueryWord]) -> bool:
        return len(units) <= self._max_key_length and any(key in self.alternatives for key in _synonym_keys(units))

    def join_words(self, query: QueryNode, analyzer: Analyzer, languages: frozenset[str]) -> QueryNode:
        """Return a query in which words with a common synonym are one text."""
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
    """Return the keys under which adjacent words may have synonyms: their terms in each language."""
    most = max((len(unit.alternatives) for unit in units), default=0)
    return dict.fromkeys(
        tuple(row for unit in units for row in unit.alternatives[min(number, len(unit.alternatives) - 1)])
        for number in range(most)
    )


def _synonym_alternatives(
    analyzer: Analyzer, text: str, units: list[QueryWord], languages: frozenset[str]
) -> list[tuple[TermSequence, ...]]:
    """Return the term sequences that match a synonym with the words ``units``; several words match as a phrase."""
    if len(units) == 1:
        return [*units[0].alternatives]
    codes = ("en", *sorted(languages))
    return [(row,) for row in dict.fromkeys(tuple(analyzer.index_terms(text, code)) for code in codes) if row]


@lru_cache(maxsize=4)
def get_synonym_expander(groups: SynonymGroups, analyzer: Analyzer, languages: frozenset[str]) -> SynonymExpander:
    """Return the cached expander, which all planners share."""
    return SynonymExpander(groups, analyzer, languages)
