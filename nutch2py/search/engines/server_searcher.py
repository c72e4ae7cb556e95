"""ServerSearcher: searches Solr or OpenSearch by the plans of :mod:`nutch2py.search.query.query_plan`."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.index_fields import TERMS_PREFIX
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.search.engines.plan_searcher import HitRequest, PlanSearcher
from nutch2py.search.query.freshness import Freshness
from nutch2py.search.query.query_plan import (
    DEFAULT_SEARCH_OPTIONS,
    DisMaxClause,
    FilterClause,
    IndexTerm,
    PhraseClause,
    PrefixClause,
    QueryPlan,
    indexed_languages,
)
from nutch2py.search.query.query_planner import QueryPlanner
from nutch2py.search.suggestions.prefix_terms import SAMPLE_SIZE, PrefixTerm, find_prefix_terms
from nutch2py.search.suggestions.spelling import SpellingCorrector
from nutch2py.search.suggestions.suggester import SuggestionCache

_LANGUAGES_TTL = 60.0  # seconds; how long the languages of an index are cached
_SUGGESTIONS_TTL = 60.0  # seconds; how long terms and spellings for suggestions are cached
MAX_RESPONSE_SECONDS, MAX_RETRY_SECONDS = 30.0, 5.0
"""Seconds for one response, and for retries of an unavailable server, while a user waits."""
QUERY_TOO_LONG_MESSAGE = "The query has too many words: shorten it."
QUERY_REJECTED_MESSAGE = "The query was not understood."
_MAX_CACHED_TERMS = 20_000
LUCENE_SCALE = 1 / 2.2
"""Scale of constant scores: Lucene's BM25 omits the factor k1 + 1 = 2.2, which tantivy's has."""
ANALYSIS_FIELD = f"{TERMS_PREFIX}analysis"


class ServerClient(Protocol):
    """The part of a client of a server that does not depend on the server."""

    @property
    def url(self) -> str:
        """The address in use, as messages may show it."""

    def close(self) -> None:
        """Close the connections."""


class ServerStatistics:
    """Document frequencies of a server's index, cached for as long as the planner."""

    def __init__(self, searcher: ServerSearcher) -> None:
        self._searcher = searcher
        self._frequencies: dict[IndexTerm, int] = {}
        self._document_counts: dict[str, int] = {}
        self._fields: dict[str, bool] = {}

    def document_count(self, field: str) -> int:
        """Return the number of documents that have the field, by which Lucene computes idf; all of them for ""."""
        if field not in self._document_counts:
            self._document_counts[field] = (
                self._searcher._count_documents_with_field(field) if field else self._searcher.count()
            )
        return self._document_counts[field]

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term; unknown ones are counted with one request."""
        if len(self._frequencies) > _MAX_CACHED_TERMS:
            self._frequencies.clear()
        unknown = [term for term in terms if term not in self._frequencies]
        if unknown:
            counts = self._searcher._count_phrases([PhraseClause(field, (term,)) for field, term in unknown])
            self._frequencies.update(zip(unknown, counts, strict=True))
        return [self._frequencies[term] for term in terms]

    def has_field(self, name: str) -> bool:
        """Return whether documents have a field of a plug-in."""
        if name not in self._fields:
            plan = DisMaxClause((PrefixClause("other", f"{name}="),))
            self._fields[name] = self._searcher._count_plan(plan) > 0
        return self._fields[name]


class ServerSearcher(PlanSearcher):
    """Searches a server that has our term fields. One thread at a time uses it: it has one connection."""

    def __init__(self, conf: Configuration, client: ServerClient) -> None:
        super().__init__(conf, Analyzer.from_conf(conf))
        self._connection = client
        self._languages_read_at = self._suggestions_read_at = float("-inf")
        self._planner: QueryPlanner | None = None
        self._statistics: ServerStatistics | None = None
        self._suggestion_cache = SuggestionCache()

    # for subclasses

    @abstractmethod
    def _count_phrases(self, phrases: list[PhraseClause]) -> list[int]:
        """Return the number of documents with each phrase."""

    @abstractmethod
    def _count_documents_with_field(self, field: str) -> int:
        """Return the number of documents that have terms in a field."""

    @abstractmethod
    def _similar_documents(self, term: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents, in no order, with a term in title or content within an edit distance."""

    @abstractmethod
    def _prefix_documents(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        """Return the documents with the highest weights that have a term with a prefix in title or content."""

    @abstractmethod
    def _explain_plan(self, plan: QueryPlan, document_id: str, freshness: Freshness | None) -> str | None:
        """Return the server's explanation of a score, None when the plan does not match the document."""

    # searches

    @property
    def planner(self) -> QueryPlanner:
        """The planner, with the languages of the index, which are cached for a minute."""
        if self._planner is None or time.monotonic() - self._languages_read_at > _LANGUAGES_TTL:
            own_documents = FilterClause(ANALYSIS_FIELD, self.analyzer.version)
            found = self._find(HitRequest(own_documents, facets=("lang",)))
            languages = indexed_languages(dict((found.facets or {}).get("lang", ())), found.total)
            self._statistics = statistics = ServerStatistics(self)
            corrector = SpellingCorrector(self, self.analyzer, languages)
            self._planner = QueryPlanner(self._settings, self.analyzer, languages, statistics, corrector)
            self._languages_read_at = time.monotonic()
        return self._planner

    @property
    def suggestion_cache(self) -> SuggestionCache:
        """Terms and spellings, which are cached for a minute."""
        if time.monotonic() - self._suggestions_read_at > _SUGGESTIONS_TTL:
            self._suggestion_cache, self._suggestions_read_at = SuggestionCache(), time.monotonic()
        return self._suggestion_cache

    @property
    def url(self) -> str:
        """The address in use, as messages may show it."""
        return self._connection.url

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self._planner = self._statistics = None  # they refer to this object, too

    def is_ready(self) -> bool:
        """Return whether the server has documents with the terms of this version."""
        return self.count() > 0

    def require_documents(self) -> None:
        """Raise IndexingError unless the server is ready."""
        if not self.is_ready():
            raise IndexingError(
                f"the index {self.url} has no documents with the terms of this version: run index -reindex into "
                "an index that has our fields, with index.terms"
            )

    def _count_plan(self, plan: QueryPlan) -> int:
        return self._find(HitRequest(plan)).total

    def count(self) -> int:
        """Return the number of documents of this version."""
        return self._count_plan(FilterClause(ANALYSIS_FIELD, self.analyzer.version))

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        hits = self._find(HitRequest(FilterClause("id", document_id), rows=1)).hits
        return hits[0].fields if hits else None

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""
        if self._statistics is None:
            self._statistics = ServerStatistics(self)
        return self._statistics.document_frequencies(terms)

    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return up to ``limit`` documents with words that may differ from ``word`` by two edits."""
        terms = self.analyzer.index_terms(word)
        return self._similar_documents(terms[0], 2, limit) if len(terms) == 1 else []

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        return self._similar_documents(term, 0, limit)

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return terms with a prefix, from the pages with the highest weights."""
        pages = self._prefix_documents(prefix, SAMPLE_SIZE)
        return find_prefix_terms(prefix, limit, pages, self._count_phrases, self.analyzer)

    def _explain_words(self, query: str, document_id: str) -> str | None:
        """Return the server's explanation of a score; None when the query does not match the document."""
        plan = self._plan(query, DEFAULT_SEARCH_OPTIONS).plan
        fresh, _ = self._resolve_freshness(None)
        explanation = None if plan is None else self._explain_plan(plan, document_id, fresh)
        return (
            f"{fresh.explain(self.get_document(document_id) or {})}\n{explanation}"
            if explanation and fresh
            else explanation
        )


def server_field(clause: PhraseClause | PrefixClause | FilterClause) -> str:
    """Return the server's name of a plan's field."""
    name = clause.field
    return name if name == "id" or name.startswith(TERMS_PREFIX) else f"{TERMS_PREFIX}{name}"
