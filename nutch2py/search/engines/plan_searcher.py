"""PlanSearcher: searches an index by the plans of :mod:`nutch2py.search.query.query_plan`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.index_fields import FACET_NAMES
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.records.document import clean_text
from nutch2py.search.hybrid.hybrid_query import parse_hybrid_query
from nutch2py.search.hybrid.hybrid_ranker import EnginePage, HybridRanker, HybridSearch, Neighbours
from nutch2py.search.query.freshness import Freshness, FreshnessSettings
from nutch2py.search.query.query_plan import (
    DEFAULT_SEARCH_OPTIONS,
    IndexTerm,
    PlannedQuery,
    QueryPlan,
    SearchOptions,
    matching_plan,
)
from nutch2py.search.query.query_planner import QueryPlanner
from nutch2py.search.query.query_settings import QuerySettings
from nutch2py.search.query.search_cursor import wrap_cursor
from nutch2py.search.results.collapse import collapse_hits, read_collapse_mode
from nutch2py.search.results.facets import FacetCounts, select_facets
from nutch2py.search.results.search_results import (
    MAX_ROWS,
    MAX_START,
    Hit,
    ScoredDocument,
    SearchResult,
    first_value,
)
from nutch2py.search.results.snippet import Snippet, highlight_text, make_snippet
from nutch2py.search.suggestions.prefix_terms import MAX_TEXT_CHARACTERS, PrefixTerm
from nutch2py.search.suggestions.suggester import Suggester, SuggestionCache, Suggestions
from nutch2py.support.reporting import warn

_MAX_QUERY_LENGTH = 4_000  # characters; the rest is ignored, which bounds the cost


class HitRequest(NamedTuple):
    """Request for hits of a plan.

    Attributes:
        plan: The plan.
        start: Number of hits to skip.
        rows: Number of hits.
        newest_first: Whether to sort by date instead of score.
        cursor: Cursor from which to continue; "*": from the first hit; "": from ``start``.
        freshness: Freshness, by which scores are multiplied.
        facets: Names of facets to count among all matching documents.
        max_characters: Characters of a value to read, where the index can; 0: all.

    """

    plan: QueryPlan
    start: int = 0
    rows: int = 0
    newest_first: bool = False
    cursor: str = ""
    freshness: Freshness | None = None
    facets: tuple[str, ...] = ()
    max_characters: int = 0


class EngineResult(NamedTuple):
    """Hits of a plan.

    Attributes:
        total: Number of matches.
        hits: Some of them.
        cursor: Continues after them, "" after the last.
        facets: The most frequent values of the requested facets, from the same commit as ``total``.

    """

    total: int
    hits: list[ScoredDocument]
    cursor: str = ""
    facets: FacetCounts | None = None


class PlanSearcher(ABC):
    """Plans queries, lets a subclass run the plans on its index, and makes results of the hits."""

    def __init__(self, conf: Configuration, analyzer: Analyzer) -> None:
        self.conf, self.analyzer = conf, analyzer
        self._settings, self._freshness_settings, self.collapse_mode = (
            QuerySettings.from_conf(conf),
            FreshnessSettings(conf),
            read_collapse_mode(conf),
        )
        self._hybrid = HybridRanker.from_conf(conf)

    # for subclasses

    @property
    @abstractmethod
    def planner(self) -> QueryPlanner:
        """The planner for the languages and statistics of the index."""

    @property
    @abstractmethod
    def suggestion_cache(self) -> SuggestionCache:
        """Terms and spellings of the index that were read for suggestions."""

    @abstractmethod
    def _find(self, request: HitRequest) -> EngineResult:
        """Return hits; raise IndexingError or InputError when the index cannot run the plan."""

    @abstractmethod
    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""

    @abstractmethod
    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return up to ``limit`` documents with words that may differ from ``word`` by two edits."""

    @abstractmethod
    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""

    @abstractmethod
    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return terms with a prefix, those of most pages first, with their spellings as far as known."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of documents."""

    @abstractmethod
    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document, None when it is not in the index."""

    @abstractmethod
    def _explain_words(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a score by words; None when no word matches the document."""

    def _find_nearest(self, request: Neighbours) -> list[ScoredDocument]:
        """Return the documents nearest to a vector, each with its cosine as score: none in an index without vectors."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def _admit(self, plan: QueryPlan, rows: int) -> AbstractContextManager[object]:
        """Return the context of a search, in which an expensive one may wait for others."""
        del plan, rows
        return nullcontext()

    def _find_problem(self) -> str:
        """Return why no search can have hits, "" when there is no problem; a server is checked when it is opened."""
        return ""

    def _resolve_freshness(self, half_life: float | None, cursor: str = "") -> tuple[Freshness | None, str]:
        """Return the freshness of a search and its cursor without the time of the first search."""
        return self._freshness_settings.resolve(half_life, cursor)

    # searches

    def search(
        self,
        query: str,
        start: int = 0,
        rows: int = 10,
        options: SearchOptions = DEFAULT_SEARCH_OPTIONS,
        *,
        cursor: str = "",
        with_facets: bool = False,
        planned: PlannedQuery | None = None,
    ) -> SearchResult:
        """Run a query: words, "phrases", ``field:value``, ``-minus``, AND, OR, parentheses.

        Args:
            query: The query.
            start: Number of hits to skip, limited to 0–100,000.
            rows: Number of hits, limited to 0–1,000.
            options: Filters, order and collapsing.
            cursor: Cursor from which to continue instead of ``start``; "*": from the first hit. It does not collapse.
            with_facets: Count the values of facets among all hits, too.
            planned: The plan of the query with these options, known to be cheap; None: it is planned here.

        Raises:
            IndexingError: The index is empty, or does not respond.
            InputError: The index cannot run the query with these options.

        """
        started = time.perf_counter()
        if problem := self._find_problem():
            raise IndexingError(problem)
        start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
        admission: AbstractContextManager[object] = nullcontext()
        if planned is None:
            planned = self._plan(query, options)
            admission = self._admit(planned.plan, rows) if planned.plan else admission
        fresh, cursor = (
            (None, cursor) if options.newest_first else self._resolve_freshness(options.half_life_days, cursor)
        )
        mode = self.collapse_mode if options.collapse_mode is None else options.collapse_mode
        facets: FacetCounts | None = None
        hybrid = (
            None
            if cursor or options.newest_first
            else self._start_hybrid(query, planned, fresh, options.max_characters)
        )

        def find(start: int, rows: int, excluded: tuple[str, ...] = ()) -> EngineResult:
            nonlocal facets
            if planned.plan is None:
                return EngineResult(0, [])
            restricted = options._replace(excluded_sketches=(*options.excluded_sketches, *excluded))
            counted = FACET_NAMES if with_facets and facets is None else ()
            if hybrid is not None:
                page = hybrid.find(restricted, start, rows, counted)
                facets = page.facets if counted else facets
                return EngineResult(page.total, page.hits)
            plan = restricted.apply_to(planned.plan)
            found = self._find(
                HitRequest(plan, start, rows, options.newest_first, cursor, fresh, counted, options.max_characters)
            )
            if counted:
                facets = found.facets
            return found

        collapsed_total, note, next_cursor = None, "", ""
        with admission:
            if mode and not cursor:
                total, best, collapsed_total, note = collapse_hits(
                    lambda *hits_from: find(*hits_from)[:2], mode, start, rows
                )
            else:
                total, best, next_cursor, _ = find(start, rows)
                next_cursor = wrap_cursor(next_cursor, fresh.now) if fresh else next_cursor
            hits = [highlight_hit(self.analyzer, each, planned.highlight_terms) for each in best]
        return SearchResult(
            query,
            start,
            total,
            hits,
            (time.perf_counter() - started) * 1000,
            collapsed_total,
            note,
            planned.is_relaxed,
            planned.unknown_words,
            planned.corrected_query if total else "",
            next_cursor,
            select_facets(facets or {}, options.facet_filters()),
        )

    def find_documents(self, query: str, rows: int) -> list[ScoredDocument]:
        """Return the best matching documents for suggestions, without snippets, collapsing and long texts."""
        plan = self._plan(query, DEFAULT_SEARCH_OPTIONS).plan
        fresh, _ = self._resolve_freshness(None)
        if plan is None:
            return []
        request = HitRequest(plan, 0, rows, freshness=fresh, max_characters=MAX_TEXT_CHARACTERS)
        return self._find(request).hits

    def count_matches(self, query: str) -> int:
        """Return the number of documents with all words of a query."""
        plan = self.planner.plan_all_words(query)
        return 0 if plan is None else self._find(HitRequest(plan)).total

    def _plan(
        self, query: str, options: SearchOptions, check: Callable[[QueryPlan], object] = lambda _: None
    ) -> PlannedQuery:
        """Return the plan of a query, without the filters of ``options``.

        ``check`` is called with each plan before it is run; what it raises ends the search.
        """

        def has_hits(plan: QueryPlan) -> bool:
            check(plan)
            return self._find(HitRequest(options.apply_to(matching_plan(plan)))).total > 0

        return self.planner.plan_with_hits(clean_text(query)[:_MAX_QUERY_LENGTH], has_hits)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a score as text; None when the query does not find the document."""
        planned = self._plan(query, DEFAULT_SEARCH_OPTIONS)
        fresh, _ = self._resolve_freshness(None)
        hybrid = self._start_hybrid(query, planned, fresh)
        lines = [hybrid.explain(document_id) if hybrid is not None else "", self._explain_words(query, document_id)]
        return "\n".join(filter(None, lines)) or None

    def _start_hybrid(
        self, query: str, planned: PlannedQuery, freshness: Freshness | None, max_characters: int = 0
    ) -> HybridSearch | None:
        """Return the search by words and vectors; None without an encoder, and for a query that demands words."""
        if self._hybrid is None or planned.plan is None or planned.is_relaxed:
            return None
        parsed = parse_hybrid_query(clean_text(query)[:_MAX_QUERY_LENGTH])
        if parsed is None:
            return None
        words = len(self.analyzer.query_words(parsed.text, self.planner.languages))
        engine = _HybridEngine(self, freshness, max_characters)
        try:
            return self._hybrid.start(engine, parsed.text, words, planned.plan, parsed.filters)
        except IndexingError as error:  # the plug-in failed: words are better than nothing
            warn(f"{error}: the query is searched by words")
            return None

    # suggestions and spelling

    def suggest(self, prefix: str) -> Suggestions:
        """Return completions of the last word of an input, and titles of pages."""
        return Suggester(self, self.suggestion_cache).suggest(prefix)

    def correct_query(self, query: str) -> str:
        """Return the query with similar words for those that the index does not know; "" if there are none."""
        return self.planner.correct_query(query)


class _HybridEngine(NamedTuple):
    """The searcher as a :class:`nutch2py.search.hybrid.hybrid_ranker.PlanEngine`, with the freshness of a search."""

    searcher: PlanSearcher
    freshness: Freshness | None
    max_characters: int = 0

    def find(self, plan: QueryPlan, start: int, rows: int, facets: tuple[str, ...] = ()) -> EnginePage:
        found = self.searcher._find(
            HitRequest(plan, start, rows, freshness=self.freshness, facets=facets, max_characters=self.max_characters)
        )
        return EnginePage(found.total, found.hits, found.facets)

    def find_nearest(self, request: Neighbours) -> list[ScoredDocument]:
        return self.searcher._find_nearest(request)


def highlight_hit(analyzer: Analyzer, document: ScoredDocument, terms: Iterable[str]) -> Hit:
    """Return the hit of a document, with highlighted matches."""
    fields = document.fields
    url = first_value(fields, "url") or first_value(fields, "id")
    lang = first_value(fields, "lang") or "en"
    title = highlight_text(analyzer, (first_value(fields, "title") or url)[:500], terms, lang)
    snippet = _make_hit_snippet(analyzer, fields, terms, lang)
    return Hit(
        first_value(fields, "id"),
        url,
        title,
        snippet,
        document.score,
        fields,
        document.sketch,
        document.more,
        document.others,
    )


def _make_hit_snippet(analyzer: Analyzer, fields: dict[str, Any], terms: Iterable[str], lang: str) -> Snippet:
    """Return passages with the terms, preferably of the main text, without menus."""
    title = first_value(fields, "title")
    main = first_value(fields, "maintext")
    if main:
        snippet = make_snippet(analyzer, main, terms, lang=lang, title=title)
        if snippet.highlights:
            return snippet
    return make_snippet(analyzer, first_value(fields, "content"), terms, lang=lang, title=title)
