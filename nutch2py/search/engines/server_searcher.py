"""ServerSearcher: searches Solr or OpenSearch by the plans of :mod:`nutch2py.search.query.query_plan`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.index_fields import FACET_NAMES, TERMS_PREFIX
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.search.query.freshness import Freshness, FreshnessSettings
from nutch2py.search.query.query_plan import (
    DEFAULT_SEARCH_OPTIONS,
    DisMaxClause,
    FilterClause,
    PhraseClause,
    PlannedQuery,
    PrefixClause,
    QueryPlan,
    QuerySettings,
    SearchOptions,
    indexed_languages,
)
from nutch2py.search.query.query_planner import IndexTerm, QueryPlanner
from nutch2py.search.query.search_cursor import wrap_cursor
from nutch2py.search.results.collapse import read_collapse_mode
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, FacetCounts, server_facet_field
from nutch2py.search.results.search_results import ScoredDocument
from nutch2py.search.suggestions.prefix_terms import SAMPLE_SIZE, PrefixTerm, find_prefix_terms
from nutch2py.search.suggestions.spelling import SpellingCorrector

_LANGUAGES_TTL = 60.0  # seconds; how long the languages of an index are cached
MAX_RESPONSE_SECONDS, MAX_RETRY_SECONDS = 30.0, 5.0
"""Seconds for one response, and for retries of an unavailable server, while a user waits."""
_MAX_CACHED_TERMS = 20_000
ANALYSIS_FIELD = f"{TERMS_PREFIX}analysis"


class EngineResult(NamedTuple):
    """Result of a search.

    Attributes:
        total: Number of matches.
        hits: Some of them.
        cursor: Continues after them, "" after the last.
        is_relaxed: Whether quotes, ``+`` and ``AND`` of the query were ignored, since nothing matches with them.
        unknown_words: Words of the query that no document has.
        corrected_query: The query with similar words, whose hits are included; "" if there are none.

    """

    total: int
    hits: list[ScoredDocument]
    cursor: str = ""
    is_relaxed: bool = False
    unknown_words: tuple[str, ...] = ()
    corrected_query: str = ""


class SearchEngine(Protocol):
    """Runs plans on a server. One thread at a time uses it. Failures are IndexingError or InputError."""

    @property
    def url(self) -> str:
        """The address, as messages may show it."""

    def find(
        self,
        plan: QueryPlan,
        start: int,
        rows: int,
        newest_first: bool = False,
        cursor: str = "",
        freshness: Freshness | None = None,
    ) -> EngineResult:
        """Return the hits from ``start`` or ``cursor`` on ("*": the first), by date with ``newest_first``."""

    def count_values(self, plan: QueryPlan, fields: tuple[str, ...], limit: int) -> dict[str, list[tuple[str, int]]]:
        """Return the most frequent values of fields among the matching documents."""

    def fuzzy_documents(self, term: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content within an edit distance."""

    def prefix_documents(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        """Return the documents with the highest weights that have a term with a prefix in title or content."""

    def count_phrases(self, phrases: list[PhraseClause]) -> list[int]:
        """Return the number of documents with each phrase."""

    def count_documents_with_field(self, field: str) -> int:
        """Return the number of documents that have terms in a field."""

    def explain(self, plan: QueryPlan, document_id: str, freshness: Freshness | None = None) -> str | None:
        """Return the explanation of a score as text, None when the plan does not match the document."""

    def close(self) -> None:
        """Close the connections."""


class ServerStatistics:
    """Document frequencies of a server's index, cached for as long as the planner."""

    def __init__(self, engine: SearchEngine) -> None:
        self._engine = engine
        self._frequencies: dict[IndexTerm, int] = {}
        self._document_counts: dict[str, int] = {}
        self._fields: dict[str, bool] = {}

    def document_count(self, field: str) -> int:
        """Return the number of documents that have the field, by which Lucene computes idf."""
        if field not in self._document_counts:
            self._document_counts[field] = self._engine.count_documents_with_field(field)
        return self._document_counts[field]

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term; unknown ones are counted with one request."""
        if len(self._frequencies) > _MAX_CACHED_TERMS:
            self._frequencies.clear()
        unknown = [term for term in terms if term not in self._frequencies]
        if unknown:
            counts = self._engine.count_phrases([PhraseClause(field, (term,)) for field, term in unknown])
            self._frequencies.update(zip(unknown, counts, strict=True))
        return [self._frequencies[term] for term in terms]

    def has_field(self, name: str) -> bool:
        """Return whether documents have a field of a plug-in."""
        if name not in self._fields:
            plan = DisMaxClause((PrefixClause("other", f"{name}="),))
            self._fields[name] = self._engine.find(plan, 0, 0).total > 0
        return self._fields[name]


class ServerSearcher:
    """Searches a server through a :class:`SearchEngine`.

    The methods are those of :class:`nutch2py.search.engines.embedded_searcher.EmbeddedSearcher`.
    """

    def __init__(self, conf: Configuration, engine: SearchEngine) -> None:
        self.engine, self.analyzer = engine, Analyzer.from_conf(conf)
        self._settings, self._freshness_settings, self.collapse_mode = (
            QuerySettings.from_conf(conf),
            FreshnessSettings(conf),
            read_collapse_mode(conf),
        )
        self._languages_read_at = float("-inf")
        self._planner: QueryPlanner | None = None
        self._statistics = ServerStatistics(engine)

    @property
    def planner(self) -> QueryPlanner:
        """The planner, with the languages of the index, which are cached for a minute."""
        if self._planner is None or time.monotonic() - self._languages_read_at > _LANGUAGES_TTL:
            own_documents = FilterClause(ANALYSIS_FIELD, self.analyzer.version)
            languages = dict(self.engine.count_values(own_documents, ("lang",), 100).get("lang", ()))
            codes = indexed_languages(languages)
            self._statistics = ServerStatistics(self.engine)
            corrector = SpellingCorrector(self, self.analyzer, codes)
            self._planner = QueryPlanner(self._settings, self.analyzer, codes, self._statistics, corrector)
            self._languages_read_at = time.monotonic()
        return self._planner

    def is_ready(self) -> bool:
        """Return whether the server has documents with the terms of this version."""
        return self.count() > 0

    def require_ready(self) -> None:
        """Raise IndexingError unless the server is ready."""
        if not self.is_ready():
            raise IndexingError(
                f"the index {self.engine.url} has no documents with the terms of this version: run index -reindex into "
                "an index that has our fields, with index.terms"
            )

    def search(
        self, query: str, start: int = 0, rows: int = 10, options: SearchOptions = DEFAULT_SEARCH_OPTIONS
    ) -> tuple[int, list[ScoredDocument], frozenset[str]]:
        """Return the number of matches, the hits from ``start`` on, and the terms to highlight in them."""
        result, terms = self.search_with_cursor(query, start, rows, options)
        return result.total, result.hits, terms

    def search_with_cursor(
        self, query: str, start: int, rows: int, options: SearchOptions = DEFAULT_SEARCH_OPTIONS, cursor: str = ""
    ) -> tuple[EngineResult, frozenset[str]]:
        """Return hits from ``start`` or ``cursor`` on with the next cursor, and the terms to highlight."""
        planned = self._plan(query, options)
        if planned.plan is None:
            return EngineResult(0, []), planned.highlight_terms
        plan = options.apply_to(planned.plan)
        fresh, cursor = (
            (None, cursor) if options.newest_first else self._freshness_settings.resolve(options.half_life_days, cursor)
        )
        result = self.engine.find(plan, start, rows, options.newest_first, cursor, fresh)
        result = result._replace(
            cursor=wrap_cursor(result.cursor, fresh.now) if fresh else result.cursor,
            is_relaxed=planned.is_relaxed,
            unknown_words=planned.unknown_words,
            corrected_query=planned.corrected_query if result.total else "",
        )
        return result, planned.highlight_terms

    def count_matches(self, query: str) -> int:
        """Return the number of documents with all words of a query."""
        plan = self.planner.plan_all_words(query)
        return 0 if plan is None else self.engine.find(plan, 0, 0).total

    def _plan(self, query: str, options: SearchOptions, *, is_ranked: bool = True) -> PlannedQuery:
        """Return the plan of a query, without the filters of ``options``."""
        return self.planner.plan_with_hits(
            query, lambda plan: self.engine.find(options.apply_to(plan), 0, 0).total > 0, is_ranked=is_ranked
        )

    def count(self) -> int:
        """Return the number of documents of this version."""
        return self.engine.find(FilterClause(ANALYSIS_FIELD, self.analyzer.version), 0, 0).total

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        hits = self.engine.find(FilterClause("id", document_id), 0, 1).hits
        return hits[0].fields if hits else None

    def count_facets(self, query: str, options: SearchOptions = DEFAULT_SEARCH_OPTIONS) -> FacetCounts:
        """Return the most frequent values of :data:`FACET_NAMES` among all matching documents, with their counts."""
        plan = self._plan(query, options, is_ranked=False).plan
        if plan is None:
            return {}
        fields = {name: server_facet_field(name) for name in FACET_NAMES}
        counts = self.engine.count_values(options.apply_to(plan), tuple(fields.values()), MAX_COUNTED_VALUES)
        return {name: counts[field] for name, field in fields.items()}

    def correct_query(self, query: str) -> str:
        """Return the query with similar words for those that the index does not know; "" if there are none."""
        return self.planner.correct_query(query)

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""
        return self._statistics.document_frequencies(terms)

    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return up to ``limit`` documents with words that may differ from ``word`` by two edits."""
        terms = self.analyzer.index_terms(word)
        return self.engine.fuzzy_documents(terms[0], 2, limit) if len(terms) == 1 else []

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        return self.engine.fuzzy_documents(term, 0, limit)

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return terms with a prefix, from the pages with the highest weights."""
        pages = self.engine.prefix_documents(prefix, SAMPLE_SIZE)
        return find_prefix_terms(prefix, limit, pages, self.engine.count_phrases, self.analyzer)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a document's score; None when the query does not match it."""
        plan = self._plan(query, DEFAULT_SEARCH_OPTIONS).plan
        fresh, _ = self._freshness_settings.resolve(None)
        explanation = None if plan is None else self.engine.explain(plan, document_id, fresh)
        return (
            f"{fresh.explain(self.get_document(document_id) or {})}\n{explanation}"
            if explanation and fresh
            else explanation
        )

    def close(self) -> None:
        """Close the connections."""
        self.engine.close()


def server_field(clause: PhraseClause | PrefixClause | FilterClause) -> str:
    """Return the server's name of a plan's field."""
    name = clause.field
    return name if name == "id" or name.startswith(TERMS_PREFIX) else f"{TERMS_PREFIX}{name}"
