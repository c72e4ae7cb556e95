"""Query plans: the terms to match in each field and their weights, for the embedded index, Solr and OpenSearch.

All of them hold the same terms in the same fields (:mod:`nutch2py.indexer.search_fields`) and rank by BM25. Engines
translate a plan and add nothing. :mod:`nutch2py.search.query.query_planner` makes plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from nutch2py.backends.analysis.stemming import analysis_language

TIE_BREAKER = 0.1
"""Weight of the other fields of a word next to the best one."""
FILTER_SCORE = 0.001
_MIN_LANGUAGE_SHARE = 0.0002  # of the pages of an index


IndexTerm = tuple[str, str]
"""A field and a term."""


class PhraseClause(NamedTuple):
    """Terms as a phrase in a field, with a weight."""

    field: str
    terms: tuple[str, ...]
    weight: float = 1.0


class DisMaxClause(NamedTuple):
    """Matches any of the phrases. Its score is the best one's, plus ``tie_breaker`` times the others'."""

    clauses: tuple[PhraseClause | PrefixClause, ...]
    tie_breaker: float = TIE_BREAKER


class FilterClause(NamedTuple):
    """A whole value, ``field=value`` of the field ``exact``, or an id. Its score is negligible."""

    field: str
    term: str


class PrefixClause(NamedTuple):
    """Terms of a field that start with a prefix. Its score is the weight."""

    field: str
    prefix: str
    weight: float = 1.0


class ConstantClause(NamedTuple):
    """The documents of a clause, all with the same score."""

    clause: DisMaxClause
    score: float


class MatchAllClause(NamedTuple):
    """All documents."""


class BooleanClause(NamedTuple):
    """All of ``must``, at least ``minimum_match`` of ``should``, none of ``must_not``. Scores of matches are added."""

    must: tuple[QueryPlan, ...] = ()
    should: tuple[QueryPlan, ...] = ()
    must_not: tuple[QueryPlan, ...] = ()
    minimum_match: int = 0


QueryPlan = DisMaxClause | ConstantClause | FilterClause | MatchAllClause | BooleanClause


class Correction(NamedTuple):
    """A word of the index that is similar to a typed word.

    Attributes:
        word: The word as people write it, in lower case.
        terms: Its index terms, in the languages of the index.
        weight: Its weight next to the word as typed.

    """

    word: str
    terms: tuple[str, ...]
    weight: float


class PlannedQuery(NamedTuple):
    """A planned query.

    Attributes:
        plan: The plan; None for a query without words.
        highlight_terms: The terms to highlight in hits.
        has_demands: Whether quotes, ``+`` or ``AND`` demand something that a relaxed plan would not.
        is_relaxed: Whether quotes, ``+`` and ``AND`` demand nothing in this plan.
        unknown_words: Words that no document has, as typed.
        corrected_query: The query with the similar words that are searched, too; "" if there are none.
        is_uncertain: Whether the words may be in documents, but perhaps not as they are joined in the query.

    """

    plan: QueryPlan | None
    highlight_terms: frozenset[str]
    has_demands: bool = False
    is_relaxed: bool = False
    unknown_words: tuple[str, ...] = ()
    corrected_query: str = ""
    is_uncertain: bool = False


class SearchOptions(NamedTuple):
    """Options of a search.

    Attributes:
        filters: Pairs (field, value); ``site`` is a host with its subdomains.
        newest_first: Sort by date, newest first, instead of by relevance.
        half_life_days: Half-life of freshness; 0: no freshness; None: the value of the property.
        collapse_mode: "", "host" or "near" (:mod:`nutch2py.search.results.collapse`); None: the value of the property.
        excluded_sketches: Sketches of texts to exclude.
        max_characters: Characters of a value to read, where the index can; 0: all.

    """

    filters: tuple[tuple[str, str], ...] = ()
    newest_first: bool = False
    half_life_days: float | None = None
    collapse_mode: str | None = None
    excluded_sketches: tuple[str, ...] = ()
    max_characters: int = 0

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

    def facet_filters(self) -> dict[str, str]:
        """Return the filters by facet name."""
        return {"host" if name == "site" else name: value for name, value in self.filters}

    def apply_to(self, plan: QueryPlan) -> QueryPlan:
        """Return a plan restricted by the filters."""
        filters = tuple(make_filter(name, value) for name, value in self.filters)
        excluded = tuple(make_filter("near", sketch) for sketch in self.excluded_sketches)
        return BooleanClause(must=(plan, *filters), must_not=excluded) if filters or excluded else plan


DEFAULT_SEARCH_OPTIONS = SearchOptions()


def matching_plan(plan: QueryPlan) -> QueryPlan:
    """Return a plan without the clauses that only rank: it matches the same documents.

    >>> word = DisMaxClause((PhraseClause("title", ("web",)),))
    >>> matching_plan(BooleanClause(should=(word, ConstantClause(word, 2.0)), minimum_match=1)) == word
    True
    """
    if not isinstance(plan, BooleanClause):
        return plan
    must = tuple(map(matching_plan, plan.must))
    must_not = tuple(map(matching_plan, plan.must_not))
    matched = {part for part in plan.should if not isinstance(part, ConstantClause)}
    should = [part for part in plan.should if not (isinstance(part, ConstantClause) and part.clause in matched)]
    if plan.minimum_match == 0 and plan.must:
        should = []
    if len(must) == 1 and not should and not must_not:
        return must[0]
    if len(should) == 1 and not must and not must_not:
        return matching_plan(should[0])
    return BooleanClause(must, tuple(map(matching_plan, should)), must_not, plan.minimum_match)


def make_filter(field: str, value: str) -> FilterClause:
    """Return a filter for documents with a whole value."""
    return FilterClause("id", value) if field == "id" else FilterClause("exact", f"{field}={value.lower()}")


def exact_field_name(field: str) -> str:
    """Return the name of a field in the field ``exact``: ``site``, which includes subdomains, for ``host``."""
    return "site" if field == "host" else field


def indexed_languages(counts: Mapping[str, int], total: int) -> frozenset[str]:
    """Return the codes of the languages by whose rules the pages of an index were analysed.

    Pages without a known language were analysed as English. A code with very few pages is left out: these are pages
    whose language was taken for another, and stems of a language match words of others.

    Args:
        counts: Number of pages with each ``lang``.
        total: Number of pages.

    >>> indexed_languages({"sv": 10_000, "tr": 1}, 10_001)
    frozenset({'sv'})
    >>> sorted(indexed_languages({"sv": 8, "fi": 1, "zh": 1}, 10)), sorted(indexed_languages({"sv": 8}, 10))
    (['en', 'fi', 'sv'], ['en', 'sv'])
    """
    pages = Counter({"en": total - sum(counts.values())})
    for lang, count in counts.items():
        pages[analysis_language(lang)] += count
    codes = frozenset(code for code, count in pages.items() if count > 0 and count >= total * _MIN_LANGUAGE_SHARE)
    return codes or frozenset({"en"})
