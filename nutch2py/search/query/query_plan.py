"""QueryPlanner: turns a query into a plan of matching and ranking for the embedded index, Solr and OpenSearch.

All of them hold the same terms in the same fields (:mod:`nutch2py.indexer.search_fields`) and rank by BM25. A plan
names the terms to match in each field and their weights. Engines translate it and add nothing.
:doc:`docs/ranking.md` describes the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from nutch2py.backends.analysis.analyzer import Analyzer, QueryWord
from nutch2py.backends.analysis.dictionaries import read_dictionaries, strip_comments
from nutch2py.backends.analysis.stemming import analysis_language, is_stopword
from nutch2py.backends.index_fields import EXACT_FIELDS, TEXT_FIELDS
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.query.query_language import (
    AndNode,
    NotNode,
    OrNode,
    QueryNode,
    TextNode,
    WordsNode,
    iter_positive_texts,
    parse_query,
)
from nutch2py.search.query.synonyms import SYNONYMS_PROPERTY as SYNONYMS
from nutch2py.search.query.synonyms import SynonymGroups, get_synonym_expander, parse_synonyms

DEFAULT_FIELD_WEIGHTS = "title^3 anchor^2 content url^1.5 host^2"
TIE_BREAKER = 0.1
"""Weight of the other phrases of a word next to the best one."""
FILTER_SCORE = 0.001
DEFAULT_PHRASE_BOOST = 2.0
"""Boost of all words as a phrase in title or content; a pair of words gets half of it."""
_SAME_FIELD_BOOST = 1.0  # all words in one field, as a share of the field's weight above 1
_MAX_PHRASE_WORDS = 8  # words
_FIELD_WEIGHT = re.compile(r"(\w+)(?:\^([0-9.]+))?")
DEFAULT_MINIMUM_MATCH = "3<75% 5<2"
_MINIMUM_MATCH = re.compile(r"(?:(\d+)<)?(\d+)(%?)")


class PhraseClause(NamedTuple):
    """Terms as a phrase in a field, with a weight."""

    field: str
    terms: tuple[str, ...]
    weight: float = 1.0


class DisMaxClause(NamedTuple):
    """Matches any of the phrases. Its score is the best one's, plus ``tie_breaker`` times the others'."""

    clauses: tuple[PhraseClause, ...]
    tie_breaker: float = TIE_BREAKER


class FilterClause(NamedTuple):
    """A whole value, ``field=value`` of the field ``exact``, or an id. Its score is negligible."""

    field: str
    term: str


class MatchAllClause(NamedTuple):
    """All documents."""


class BooleanClause(NamedTuple):
    """All of ``must``, at least ``minimum_match`` of ``should``, none of ``must_not``. Scores of matches are added."""

    must: tuple[QueryPlan, ...] = ()
    should: tuple[QueryPlan, ...] = ()
    must_not: tuple[QueryPlan, ...] = ()
    minimum_match: int = 0


QueryPlan = DisMaxClause | FilterClause | MatchAllClause | BooleanClause


class QuerySettings(NamedTuple):
    """Search settings of a configuration.

    Attributes:
        field_weights: Weights of the default fields.
        any_word: Join words by OR.
        minimum_match: Steps of (more words than this, required number); a negative number is a percentage.
        phrase_boost: Boost of words as a phrase.
        synonym_groups: Synonyms.
        stopwords: Additional stopwords in lower case, which need not match.

    """

    field_weights: dict[str, float]
    any_word: bool
    minimum_match: tuple[tuple[int, int], ...]
    phrase_boost: float = DEFAULT_PHRASE_BOOST
    synonym_groups: SynonymGroups = ()
    stopwords: frozenset[str] = frozenset()

    @classmethod
    def from_conf(cls, conf: Configuration) -> QuerySettings:
        """Read ``index.search.fields``, ``.operator``, ``.minimum`` and ``.together``, and the synonyms."""
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
        )

    def required_words(self, words: int) -> int:
        """Return the required number of a number of words.

        >>> settings = QuerySettings({}, False, ((3, -75), (5, 2)))
        >>> [settings.required_words(n) for n in range(8)]
        [0, 1, 2, 3, 3, 3, 2, 2]
        """
        number = next((number for more_than, number in reversed(self.minimum_match) if words > more_than), -100)
        return min(words, max(1, words * -number // 100 if number < 0 else number))


class PlannedQuery(NamedTuple):
    """A planned query: ``plan`` is None for an empty query; ``highlight_terms`` are the terms to highlight in hits."""

    plan: QueryPlan | None
    highlight_terms: frozenset[str]


class SearchOptions(NamedTuple):
    """Options of a search.

    Attributes:
        filters: Pairs (field, value); ``site`` is a host with its subdomains.
        newest_first: Sort by date, newest first, instead of by relevance.
        half_life_days: Half-life of freshness; 0: no freshness; None: the value of the property.
        collapse_mode: "", "host" or "near" (:mod:`nutch2py.search.results.collapse`); None: the value of the property.
        excluded_sketches: Sketches of texts to exclude.

    """

    filters: tuple[tuple[str, str], ...] = ()
    newest_first: bool = False
    half_life_days: float | None = None
    collapse_mode: str | None = None
    excluded_sketches: tuple[str, ...] = ()

    @classmethod
    def from_filters(
        cls, filters: dict[str, str], newest_first: bool = False, half_life_days: float | None = None
    ) -> SearchOptions:
        """Return options with filters by facet name."""
        return cls(
            tuple((exact_field_name(name), value) for name, value in filters.items()), newest_first, half_life_days
        )

    def with_filter(self, field: str, value: str) -> SearchOptions:
        """Return the options with one more filter."""
        return self._replace(filters=(*self.filters, (field, value)))

    def apply_to(self, plan: QueryPlan, planner: QueryPlanner) -> QueryPlan:
        """Return a plan restricted by the filters."""
        filters = tuple(planner.make_filter(name, value) for name, value in self.filters)
        excluded = tuple(planner.make_filter("near", sketch) for sketch in self.excluded_sketches)
        return BooleanClause(must=(plan, *filters), must_not=excluded) if filters or excluded else plan


DEFAULT_SEARCH_OPTIONS = SearchOptions()


class QueryPlanner:
    """Plans queries for an index with pages in ``languages`` (codes)."""

    def __init__(self, settings: QuerySettings, analyzer: Analyzer, languages: frozenset[str] = frozenset()) -> None:
        self.settings, self.analyzer, self.languages = settings, analyzer, languages | {"en"}
        self._synonyms = get_synonym_expander(settings.synonym_groups, analyzer, self.languages)

    def plan(self, query: str, boost_proximity: bool = True) -> PlannedQuery:
        """Return the plan of a query; ``boost_proximity``: also reward words that are adjacent."""
        tree = parse_query(query, self.settings.any_word)
        if tree is None:
            return PlannedQuery(None, frozenset())
        tree = self._synonyms.join_words(tree, self.analyzer, self.languages)
        plan = self._plan_node(tree, len(self._free_words(tree)))
        if plan is not None and boost_proximity and (boosts := self._proximity_boosts(tree)):
            plan = BooleanClause(must=(plan,), should=boosts)
        return PlannedQuery(plan, self._highlight_terms(tree))

    def make_filter(self, field: str, value: str) -> QueryPlan:
        """Return a filter for documents with a whole value."""
        return FilterClause("id", value) if field == "id" else FilterClause("exact", f"{field}={value.lower()}")

    def _plan_node(self, query: QueryNode, words: int) -> QueryPlan | None:
        """Return the plan of a part of a query with ``words`` words."""
        if isinstance(query, TextNode):
            return self._plan_text(query, words)
        if isinstance(query, WordsNode):
            return self._plan_words(query, words)
        if isinstance(query, OrNode):
            parts = [self._plan_node(part, words) for part in query.parts]
            return _any_of([part for part in parts if part is not None])
        must, must_not = list[QueryPlan](), list[QueryPlan]()
        for part in query.parts if isinstance(query, AndNode) else (query,):
            inner = self._plan_node(part.part if isinstance(part, NotNode) else part, words)
            if inner is not None:
                (must_not if isinstance(part, NotNode) else must).append(inner)
        if must_not and not must:
            must.append(MatchAllClause())
        return _all_of(must, must_not)

    def _plan_words(self, query: WordsNode, words: int) -> QueryPlan | None:
        """Return the plan of words of which most must match; stopwords need not, unless there are no other words."""
        required, optional = list[QueryPlan](), list[QueryPlan]()
        for text in query.parts:
            plan = self._plan_text(text, words)
            if plan is not None:
                is_stop = is_stopword(text.text, self.languages) or text.text.lower() in self.settings.stopwords
                (optional if is_stop else required).append(plan)
        if not required:
            required, optional = optional, []
        least = self.settings.required_words(len(required))
        if least < len(required):
            clause: QueryPlan = BooleanClause(should=tuple(required), minimum_match=least)
            return BooleanClause(must=(clause,), should=tuple(optional)) if optional else clause
        return _all_of(required, should=optional)

    def _plan_text(self, text: TextNode, words: int) -> QueryPlan | None:
        field = text.field
        if field == "id":
            return FilterClause("id", text.text)
        if field in EXACT_FIELDS:
            return self.make_filter(field, text.text)
        units = self._query_words(text)
        plans: list[QueryPlan] = []
        for unit in units:
            alternatives = [
                self._plan_alternative(alternative, field, words + len(units) - 1) for alternative in unit.alternatives
            ]
            if all(isinstance(each, DisMaxClause) for each in alternatives):
                plans.append(
                    DisMaxClause(
                        tuple(row for each in alternatives if isinstance(each, DisMaxClause) for row in each.clauses)
                    )
                )
            else:
                any_clause = _any_of(alternatives)
                plans.extend([any_clause] if any_clause is not None else [])
        return _all_of(plans)

    def _query_words(self, text: TextNode) -> list[QueryWord]:
        """Return the words of a text; a phrase is one word with the terms of pages, so that it matches them."""
        if not text.phrase:
            units = self.analyzer.query_words(text.text, self.languages)
            return self._synonyms.expand(units) if text.field in ("", *TEXT_FIELDS) else units
        rows = dict.fromkeys(
            tuple(self.analyzer.index_terms(text.text, code)) for code in ("en", *sorted(self.languages))
        )
        alternatives = tuple((row,) for row in rows if row)
        return [QueryWord(alternatives)] if alternatives else []

    def _plan_alternative(self, alternative: tuple[tuple[str, ...], ...], field: str, words: int) -> QueryPlan:
        plans: list[QueryPlan] = [self._plan_terms(terms, field, words) for terms in alternative]
        return plans[0] if len(plans) == 1 else BooleanClause(must=tuple(plans))

    def _plan_terms(self, terms: tuple[str, ...], field: str, words: int) -> DisMaxClause:
        parts = self.analyzer.compound_parts(terms[0]) if len(terms) == 1 else ()
        rows = []
        if not field:
            for name, weight in self.settings.field_weights.items():
                # One of several words in the title alone means less than all of them there.
                shared = weight if weight <= 1 or words <= 1 else 1 + (weight - 1) / words
                rows += self._phrase_clauses(name, terms, parts, shared)
        elif field in TEXT_FIELDS:
            rows += self._phrase_clauses(field, terms, parts, 1.0)
        else:
            rows.append(PhraseClause("other", tuple(f"{field}={term}" for term in terms)))
        return DisMaxClause(tuple(rows))

    def _phrase_clauses(
        self, field: str, terms: tuple[str, ...], parts: tuple[str, ...], weight: float
    ) -> list[PhraseClause]:
        # 香港电影 matches 香港电影院, which is indexed as 香港 电影 电影院.
        return [PhraseClause(field, terms, weight), *([PhraseClause(field, parts, weight)] if parts else [])]

    def _free_words(self, query: QueryNode) -> list[str]:
        """Return the words without field and quotes that belong together, in the order typed."""
        parts = query.parts if isinstance(query, AndNode) else (query,)
        texts: list[TextNode] = []
        for part in parts:
            if isinstance(part, TextNode):
                texts.append(part)
            elif isinstance(part, WordsNode):
                texts.extend(part.parts)
            elif isinstance(part, AndNode):
                return self._free_words(part) or [text.text for text in texts]
        return [text.text for text in texts if not text.phrase and not text.field]

    def _proximity_boosts(self, query: QueryNode) -> tuple[QueryPlan, ...]:
        """Return clauses that reward documents with all words in one field, adjacent, or in adjacent pairs."""
        text = " ".join(self._free_words(query))
        sequences = dict.fromkeys(
            tuple(self.analyzer.index_terms(text, code)) for code in ("en", *sorted(self.languages))
        )
        rows = [row for row in sequences if 2 <= len(row) <= _MAX_PHRASE_WORDS]
        if not rows:
            return ()
        first, phrase_boost, pair_boost = rows[0], self.settings.phrase_boost, self.settings.phrase_boost / 2
        boosts: list[QueryPlan] = []
        if phrase_boost:
            boosts.append(
                DisMaxClause(
                    tuple(PhraseClause(field, row, phrase_boost) for row in rows for field in ("title", "content"))
                )
            )
        if phrase_boost and len(first) > 2:
            boosts += [
                DisMaxClause((PhraseClause("title", pair, pair_boost), PhraseClause("content", pair, pair_boost)))
                for pair in pairwise(first)
            ]
        # All words together regain the weight that a single word loses in a field with a higher weight.
        for name, weight in self.settings.field_weights.items():
            if weight > 1:
                share = _SAME_FIELD_BOOST * (weight - 1) * (1 - 1 / len(first))
                boosts += [
                    BooleanClause(
                        must=tuple(DisMaxClause((PhraseClause(name, (term,), share),)) for term in dict.fromkeys(row))
                    )
                    for row in rows
                ]
        return tuple(boosts)

    def _highlight_terms(self, query: QueryNode) -> frozenset[str]:
        return frozenset(
            term
            for text in iter_positive_texts(query)
            if text.field in ("", "title", "content")
            for unit in self._query_words(text)
            for alternative in unit.alternatives
            for row in alternative
            for term in (*row, *(part for one in row for part in self.analyzer.compound_parts(one)))
        )


def _all_of(
    must: list[QueryPlan], must_not: list[QueryPlan] | None = None, should: list[QueryPlan] | None = None
) -> QueryPlan | None:
    if len(must) == 1 and not must_not and not should:
        return must[0]
    return (
        BooleanClause(tuple(must), tuple(should or ()), tuple(must_not or ())) if must or must_not or should else None
    )


def _any_of(parts: list[QueryPlan]) -> QueryPlan | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else BooleanClause(should=tuple(parts), minimum_match=1)


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


def exact_field_name(field: str) -> str:
    """Return the name of a field in the field ``exact``: ``site``, which includes subdomains, for ``host``."""
    return "site" if field == "host" else field


def indexed_languages(counts: Mapping[str, int]) -> frozenset[str]:
    """Return the language codes of an index, given the number of pages with each ``lang``."""
    return frozenset(analysis_language(lang) for lang, count in counts.items() if count)
