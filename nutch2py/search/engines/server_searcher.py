"""ServerSearcher: searches Solr or OpenSearch by the plans of :mod:`nutch2py.search.query.query_plan`."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.index_fields import FACET_NAMES, TERMS_PREFIX
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.search.query.freshness import Freshness, FreshnessSettings
from nutch2py.search.query.query_plan import (
    DEFAULT_SEARCH_OPTIONS,
    FilterClause,
    PhraseClause,
    QueryPlan,
    QueryPlanner,
    QuerySettings,
    SearchOptions,
    indexed_languages,
)
from nutch2py.search.query.search_cursor import wrap_cursor
from nutch2py.search.results.collapse import read_collapse_mode
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, FacetCounts, server_facet_field
from nutch2py.search.results.search_results import ScoredDocument
from nutch2py.search.suggestions.prefix_terms import SAMPLE_SIZE, PrefixTerm, find_prefix_terms

_LANGUAGES_TTL = 60.0  # seconds; how long the languages of an index are cached
MAX_RESPONSE_SECONDS, MAX_RETRY_SECONDS = 30.0, 5.0
"""Seconds for one response, and for retries of an unavailable server, while a user waits."""
ANALYSIS_FIELD = f"{TERMS_PREFIX}analysis"


class EngineResult(NamedTuple):
    """``total``: number of matches; ``hits``: some of them; ``cursor``: continues after them, "" after the last."""

    total: int
    hits: list[ScoredDocument]
    cursor: str = ""


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

    def explain(self, plan: QueryPlan, document_id: str, freshness: Freshness | None = None) -> str | None:
        """Return the explanation of a score as text, None when the plan does not match the document."""

    def close(self) -> None:
        """Close the connections."""


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

    @property
    def planner(self) -> QueryPlanner:
        """The planner, with the languages of the index, which are cached for a minute."""
        if self._planner is None or time.monotonic() - self._languages_read_at > _LANGUAGES_TTL:
            own_documents = FilterClause(ANALYSIS_FIELD, self.analyzer.version)
            languages = dict(self.engine.count_values(own_documents, ("lang",), 100).get("lang", ()))
            self._planner = QueryPlanner(self._settings, self.analyzer, indexed_languages(languages))
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
        planned = self.planner.plan(query)
        if planned.plan is None:
            return EngineResult(0, []), planned.highlight_terms
        plan = options.apply_to(planned.plan, self.planner)
        fresh, cursor = (
            (None, cursor) if options.newest_first else self._freshness_settings.resolve(options.half_life_days, cursor)
        )
        result = self.engine.find(plan, start, rows, options.newest_first, cursor, fresh)
        return (
            result._replace(cursor=wrap_cursor(result.cursor, fresh.now)) if fresh else result
        ), planned.highlight_terms

    def count_matches(self, query: str, options: SearchOptions = DEFAULT_SEARCH_OPTIONS) -> int:
        """Return the number of matching documents."""
        plan = self.planner.plan(query, boost_proximity=False).plan
        return 0 if plan is None else self.engine.find(options.apply_to(plan, self.planner), 0, 0).total

    def count(self) -> int:
        """Return the number of documents of this version."""
        return self.engine.find(FilterClause(ANALYSIS_FIELD, self.analyzer.version), 0, 0).total

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        hits = self.engine.find(FilterClause("id", document_id), 0, 1).hits
        return hits[0].fields if hits else None

    def count_facets(self, query: str, options: SearchOptions = DEFAULT_SEARCH_OPTIONS) -> FacetCounts:
        """Return the most frequent values of :data:`FACET_NAMES` among all matching documents, with their counts."""
        plan = self.planner.plan(query, boost_proximity=False).plan
        if plan is None:
            return {}
        fields = {name: server_facet_field(name) for name in FACET_NAMES}
        counts = self.engine.count_values(
            options.apply_to(plan, self.planner), tuple(fields.values()), MAX_COUNTED_VALUES
        )
        return {name: counts[field] for name, field in fields.items()}

    def fuzzy_documents(self, word: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents with a similar word, as the embedded index does."""
        terms = self.analyzer.index_terms(word)
        return self.engine.fuzzy_documents(terms[0], distance, limit) if len(terms) == 1 else []

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        return self.engine.fuzzy_documents(term, 0, limit)

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return terms with a prefix, from the pages with the highest weights."""
        pages = self.engine.prefix_documents(prefix, SAMPLE_SIZE)
        return find_prefix_terms(prefix, limit, pages, self.engine.count_phrases, self.analyzer)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a document's score; None when the query does not match it."""
        plan = self.planner.plan(query).plan
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


def server_field(clause: PhraseClause | FilterClause) -> str:
    """Return the server's name of a plan's field."""
    name = clause.field
    return name if name == "id" or name.startswith(TERMS_PREFIX) else f"{TERMS_PREFIX}{name}"
