"""QuerySettings: the settings of a configuration by which queries are planned (``index.search.*``)."""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.backends.analysis.dictionaries import read_dictionaries, strip_comments
from nutch2py.backends.index_fields import TEXT_FIELDS
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.query.synonyms import SYNONYMS_PROPERTY as SYNONYMS
from nutch2py.search.query.synonyms import SynonymGroups, parse_synonyms

DEFAULT_FIELD_WEIGHTS = "title^3 anchor^2 content url^1.5 host^2"
DEFAULT_PHRASE_BOOST = 0.6
DEFAULT_COORDINATION = 1.0
_FIELD_WEIGHT = re.compile(r"(\w+)(?:\^([0-9.]+))?")
DEFAULT_MINIMUM_MATCH = "3<75% 5<2"
_MINIMUM_MATCH = re.compile(r"(?:(\d+)<)?(\d+)(%?)")


class QuerySettings(NamedTuple):
    """Search settings of a configuration.

    Attributes:
        field_weights: Weights of the default fields.
        any_word: Whether the number of matching words does not count (``index.search.operator`` = ``or``).
        minimum_match: Steps of (more words than this, expected number); a negative number is a percentage.
        phrase_boost: Boost of all words as a phrase in title or content; a pair of words gets half of it.
        synonym_groups: Synonyms.
        fillers: Additional filler words in lower case.
        coordination: Score of a matching word of a short query, as a multiple of its idf, next to BM25.

    """

    field_weights: dict[str, float]
    any_word: bool
    minimum_match: tuple[tuple[int, int], ...]
    phrase_boost: float = DEFAULT_PHRASE_BOOST
    synonym_groups: SynonymGroups = ()
    fillers: frozenset[str] = frozenset()
    coordination: float = DEFAULT_COORDINATION

    @classmethod
    def from_conf(cls, conf: Configuration) -> QuerySettings:
        """Read the properties ``index.search.*``, and the synonyms."""
        operator = conf.get_trimmed("index.search.operator", "and").lower()
        if operator not in ("and", "or"):
            raise ConfigurationError(f"index.search.operator is {operator!r}: write and, or or")
        return cls(
            _parse_field_weights(conf.get_trimmed("index.search.fields", DEFAULT_FIELD_WEIGHTS)),
            operator == "or",
            _parse_minimum_match(conf.get_trimmed("index.search.minimum", DEFAULT_MINIMUM_MATCH)),
            conf.get_float("index.search.together", DEFAULT_PHRASE_BOOST),
            parse_synonyms(conf, read_dictionaries(conf, SYNONYMS)),
            frozenset(strip_comments(read_dictionaries(conf, "index.stopwords.file")).lower().split()),
            conf.get_float("index.search.coordination", DEFAULT_COORDINATION),
        )

    def expected_words(self, words: int) -> int:
        """Return how many of a number of words a good document has.

        >>> settings = QuerySettings({}, False, ((3, -75), (5, 2)))
        >>> [settings.expected_words(n) for n in range(8)]
        [0, 1, 2, 3, 3, 3, 2, 2]
        """
        number = next((number for more_than, number in reversed(self.minimum_match) if words > more_than), -100)
        return min(words, max(1, words * -number // 100 if number < 0 else number))

    def coordination_of(self, words: int) -> float:
        """Return the score of each matching word of a query with a number of words, as a multiple of its idf."""
        return 0.0 if self.any_word or words < 2 else self.coordination * self.expected_words(words) / words


def _parse_field_weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in text.replace(",", " ").split():
        match = _FIELD_WEIGHT.fullmatch(part)
        if match is None or match[1] not in TEXT_FIELDS:
            raise ConfigurationError(
                f"index.search.fields has {part!r}: write field^weight with fields of {', '.join(TEXT_FIELDS)}"
            )
        weights[match[1]] = float(match[2] or 1.0)
    return weights


def _parse_minimum_match(text: str) -> tuple[tuple[int, int], ...]:
    """Parse the required number of words, in the form of Solr's mm: 75%, 2, or steps such as "3<75% 5<2"."""
    steps = []
    for part in "<".join(side.strip() for side in (text or "100%").split("<")).split():
        match = _MINIMUM_MATCH.fullmatch(part)
        if match is None or (match[3] and int(match[2]) > 100):
            raise ConfigurationError(f"index.search.minimum has {part!r}: write a number, 75%, or steps: 3<75% 5<2")
        steps.append((int(match[1] or 0), -int(match[2]) if match[3] else int(match[2])))
    return tuple(sorted(steps))
