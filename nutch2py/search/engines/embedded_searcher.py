"""EmbeddedSearcher: runs queries on the embedded index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from nutch2py.backends.analysis.stemming import LANGUAGE_CODES
from nutch2py.backends.embedded_index.index_directory import IndexDirectory
from nutch2py.backends.embedded_index.index_lookup import find_addresses, read_documents
from nutch2py.backends.embedded_index.weight_buckets import WEIGHT_BUCKETS, bucket_boost
from nutch2py.backends.index_fields import FACET_NAMES, FACET_PREFIX, SKETCH_FIELD
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.search.engines.server_searcher import EngineResult
from nutch2py.search.query.freshness import Freshness, FreshnessSettings
from nutch2py.search.query.query_plan import (
    DEFAULT_SEARCH_OPTIONS,
    FILTER_SCORE,
    ConstantClause,
    DisMaxClause,
    FilterClause,
    MatchAllClause,
    PhraseClause,
    PlannedQuery,
    PrefixClause,
    QueryPlan,
    QuerySettings,
    SearchOptions,
    exact_field_name,
    indexed_languages,
)
from nutch2py.search.query.query_planner import IndexTerm, QueryPlanner
from nutch2py.search.query.search_cursor import invalid_cursor, wrap_cursor
from nutch2py.search.results.collapse import read_collapse_mode
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, FacetCounts
from nutch2py.search.results.search_results import ScoredDocument, field_values
from nutch2py.search.suggestions.prefix_terms import SUGGEST_FIELDS, PrefixTerm
from nutch2py.search.suggestions.spelling import SpellingCorrector
from nutch2py.search.suggestions.word_edits import prefix_distance

if TYPE_CHECKING:
    import tantivy


_BEST_HITS = 200  # best hits read for facets without columns, and first for freshness
_MAX_VALUES = 30
_SIMILAR_START, _MAX_SIMILAR_STARTS = 3, 3_000  # letters that similar terms share, and number of such terms
_MIN_SIMILAR_LENGTH = 4  # letters of a term
_TERM_DOCUMENTS = 3  # documents read of a similar term


class EmbeddedSearcher:
    """Runs the plans of :mod:`nutch2py.search.query.query_plan` on the last commit of the index.

    Relevance is BM25, multiplied by the document's weight (boost and PageRank) for every match, so that the order is
    exact. One thread at a time may use an object; :meth:`reload` loads newer commits.
    """

    def __init__(self, conf: Configuration) -> None:
        self.index_dir = IndexDirectory.from_conf(conf)
        self.analyzer = self.index_dir.analyzer
        self.index = self.index_dir.open_readonly()
        self.index.config_reader("manual")
        self.schema = self.index.schema
        self._settings, self._freshness_settings, self.collapse_mode = (
            QuerySettings.from_conf(conf),
            FreshnessSettings(conf),
            read_collapse_mode(conf),
        )
        self._searcher = self.index.searcher()
        self.planner = self._make_planner()

    def _make_planner(self) -> QueryPlanner:
        counts = {code: self._searcher.doc_freq("exact", f"lang={code}") for code in sorted(LANGUAGE_CODES)}
        languages = indexed_languages(counts)
        corrector = SpellingCorrector(self, self.analyzer, languages)
        return QueryPlanner(self._settings, self.analyzer, languages, self, corrector)

    def reload(self) -> None:
        """Load commits made since the index was opened."""
        self.index_dir.refresh_view()
        self.index.reload()
        self._searcher = self.index.searcher()
        self.planner = self._make_planner()

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._searcher.num_docs)

    def document_count(self, field: str) -> int:
        """Return the number of documents, which tantivy uses for the idf of every field."""
        del field
        return self.count()

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""
        return [self._searcher.doc_freq(field, term) for field, term in terms]

    def has_field(self, name: str) -> bool:
        """Return whether documents have a field of a plug-in."""
        return bool(self._searcher.terms_with_prefix("other", f"{name}=", limit=1))

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of one document, None when it is not in the index."""
        address = self._find_address(document_id)
        return self._read_hits([(0.0, address)])[0].fields if address is not None else None

    def _find_address(self, document_id: str) -> tantivy.DocAddress | None:
        return next((address for _, address in find_addresses(self._searcher, self.schema, [document_id])), None)

    def search(
        self, query: str, start: int = 0, rows: int = 10, options: SearchOptions = DEFAULT_SEARCH_OPTIONS
    ) -> tuple[int, list[ScoredDocument], frozenset[str]]:
        """Return the number of matches, the hits from ``start`` on, and the terms to highlight in them."""
        result, terms = self.search_with_cursor(query, start, rows, options)
        return result.total, result.hits, terms

    def search_with_cursor(
        self, query: str, start: int, rows: int, options: SearchOptions = DEFAULT_SEARCH_OPTIONS, cursor: str = ""
    ) -> tuple[EngineResult, frozenset[str]]:
        """Return hits from ``start`` or ``cursor`` on ("*": the first), the next cursor, and the terms to highlight."""
        fresh, cursor = (
            (None, cursor) if options.newest_first else self._resolve_freshness(options.half_life_days, cursor)
        )
        if cursor and cursor != "*":
            if not cursor.isdecimal() or len(cursor) > 9:
                raise invalid_cursor()
            start = int(cursor)
        planned = self._plan(query, options)
        if planned.plan is None:
            return EngineResult(0, []), planned.highlight_terms
        if options.newest_first and self.index_dir.layout == 1:
            raise InputError(
                f"the index {self.index_dir.path} is of the first layout and cannot sort by date: run index -reindex"
            )
        compiled = self._to_tantivy_query(options.apply_to(planned.plan))
        try:
            total, best = self._find_best(compiled, start, rows, options.newest_first, fresh)
            hits = self._read_hits(best)
        except (ValueError, OSError) as error:
            raise IndexingError(f"the index {self.index_dir.path} cannot be searched: {error}") from error
        next_cursor = str(start + len(hits)) if hits and start + len(hits) < total else ""
        cursor = wrap_cursor(next_cursor, fresh.now) if fresh else next_cursor
        result = EngineResult(
            total, hits, cursor, planned.is_relaxed, planned.unknown_words, planned.corrected_query if total else ""
        )
        return result, planned.highlight_terms

    def _resolve_freshness(self, half_life: float | None, cursor: str = "") -> tuple[Freshness | None, str]:
        """Return the freshness of a search and its cursor; the first layout has no dates, so no freshness."""
        if self.index_dir.layout == 1:
            self._freshness_settings.resolve(half_life)  # validates the half-life
            return None, cursor
        return self._freshness_settings.resolve(half_life, cursor)

    def _find_best(
        self, query: tantivy.Query, start: int, rows: int, newest_first: bool, freshness: Freshness | None
    ) -> tuple[int, list[tuple[float, tantivy.DocAddress]]]:
        """Return the number of matching documents, and the hits from ``start`` on: score and address."""
        import tantivy

        if newest_first:
            found = self._searcher.search(
                query, max(rows, 1), offset=start, order=tantivy.Order.Desc, order_by_field="date"
            )
            return _total_hits(found), [(0.0, address) for _, address in found.hits[:rows]]
        query = self._weighted_query(query)
        if freshness is None:
            found = self._searcher.search(query, max(rows, 1), offset=start, weight_by_field="weight")
            return _total_hits(found), found.hits[:rows]
        # The factor is 1 at most: no better hit can follow one whose score without the factor is that low.
        end, depth, documents = start + rows, _BEST_HITS, self.count()
        while True:
            depth = min(max(depth, end, 1), max(documents, 1))
            found = self._searcher.search(query, depth, weight_by_field="weight")
            dates = self._searcher.fast_field_values("date", [address for _, address in found.hits])
            scored = [
                (score * freshness.factor(int(date or 0)), address)
                for (score, address), date in zip(found.hits, dates, strict=True)
            ]
            scored.sort(key=lambda hit: -hit[0])
            all_seen = len(found.hits) < depth or depth >= documents
            if all_seen or not rows or scored[end - 1][0] >= found.hits[-1][0]:
                return _total_hits(found), scored[start:end]
            depth *= 8

    def count_facets(self, query: str, options: SearchOptions = DEFAULT_SEARCH_OPTIONS) -> FacetCounts:
        """Return the most frequent values of :data:`FACET_NAMES` among all matching documents, with their counts.

        An index of an earlier layout has no columns for them: there the values are those of the best hits.
        """
        plan = self._plan(query, options, is_ranked=False).plan
        if plan is None:
            return {}
        if self.index_dir.layout < 3:
            return self._count_values_of_best(query, plan, options)
        aggregations = {
            name: {"terms": {"field": f"{FACET_PREFIX}{name}", "size": MAX_COUNTED_VALUES}} for name in FACET_NAMES
        }
        found = self._searcher.aggregate(self._to_tantivy_query(options.apply_to(plan)), aggregations)
        return {name: _sort_counts(found[name]["buckets"]) for name in FACET_NAMES}

    def explain_freshness(self, document: dict[str, Any]) -> str:
        """Return the freshness factor of a document as a line of text; "" without freshness."""
        fresh, _ = self._resolve_freshness(None)
        return fresh.explain(document) if fresh else ""

    def count_matches(self, query: str) -> int:
        """Return the number of documents with all words of a query."""
        plan = self.planner.plan_all_words(query)
        return 0 if plan is None else self._count_plan(plan)

    def _plan(self, query: str, options: SearchOptions, *, is_ranked: bool = True) -> PlannedQuery:
        """Return the plan of a query, without the filters of ``options``."""
        return self.planner.plan_with_hits(
            query, lambda plan: self._count_plan(options.apply_to(plan)) > 0, is_ranked=is_ranked
        )

    def _count_plan(self, plan: QueryPlan) -> int:
        return _total_hits(self._searcher.search(self._to_tantivy_query(plan), 1))

    def _count_values_of_best(self, query: str, plan: QueryPlan, options: SearchOptions) -> FacetCounts:
        _, hits, _ = self.search(query, 0, _BEST_HITS, options)
        facets: FacetCounts = {}
        for name in ("host", "type", "lang"):
            seen = Counter(value for hit in hits for value in field_values(hit.fields, name))
            counted = []
            for value, _ in seen.most_common(_MAX_VALUES):
                narrower = options.with_filter(exact_field_name(name), value).apply_to(plan)
                counted.append((value, self._count_plan(narrower)))
            facets[name] = sorted(counted, key=lambda pair: (-pair[1], pair[0]))
        return facets

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return the terms of the dictionary with a prefix; their original spelling is unknown."""
        counted: Counter[str] = Counter()
        for field in SUGGEST_FIELDS:
            counted.update(dict(self._searcher.terms_with_prefix(field, prefix, limit=limit)))
        return [PrefixTerm(term, count, Counter()) for term, count in counted.most_common(limit)]

    def correct_query(self, query: str) -> str:
        """Return the query with similar words for those that the index does not know; "" if there are none."""
        return self.planner.correct_query(query)

    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return up to ``limit`` documents with words that start alike and may differ from ``word`` by two edits."""
        counted: dict[str, int] = dict(
            self._searcher.terms_with_prefix("content", word[:_SIMILAR_START], limit=_MAX_SIMILAR_STARTS)
        )
        letters = frozenset(word)
        distances = {
            term: prefix_distance(term, word, 2)
            for term in counted
            if _MIN_SIMILAR_LENGTH <= len(term) <= len(word) + 2 and len(letters.union(term)) <= len(letters) + 2
        }
        terms = sorted(
            (term for term, distance in distances.items() if distance <= 2),
            key=lambda term: (distances[term] - len(term), -counted[term], term),
        )
        found = (document for term in terms[:limit] for document in self.documents_with_term(term, _TERM_DOCUMENTS))
        return [*islice(found, limit)]

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        import tantivy

        query = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, tantivy.Query.term_query(self.schema, field, term)) for field in SUGGEST_FIELDS]
        )
        hits = self._searcher.search(query, limit).hits
        return [each.fields for each in self._read_hits([(0.0, address) for _, address in hits])]

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a document's relevance as JSON; None when the query does not match it."""
        plan = self._plan(query, DEFAULT_SEARCH_OPTIONS).plan
        compiled = self._to_tantivy_query(plan) if plan is not None else None  # without the weight
        address = self._find_address(document_id)
        if compiled is None or address is None:
            return None
        try:
            return str(compiled.explain(self._searcher, address).to_json())
        except ValueError:  # the document does not match
            return None

    def _weighted_query(self, query: tantivy.Query) -> tantivy.Query:
        """Return the query boosted by the boost of each document's bucket; most indexes have one or two buckets."""
        import tantivy

        buckets = [b for b in WEIGHT_BUCKETS if self._searcher.doc_freq("exact", f"weight={b}")]
        units = [bucket_boost(bucket, self.index_dir.layout) for bucket in buckets]
        if len(units) < 2:
            return tantivy.Query.boost_query(query, units[0]) if units and units[0] != 1.0 else query
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        parts = []
        for bucket, unit in zip(buckets, units, strict=True):
            term = tantivy.Query.term_query(self.schema, "exact", f"weight={bucket}", "basic")
            inside = tantivy.Query.boolean_query([(must, query), (must, tantivy.Query.const_score_query(term, 0.0))])
            parts.append((should, tantivy.Query.boost_query(inside, unit)))
        return tantivy.Query.boolean_query(parts)

    def _read_hits(self, hits: list[tuple[float, tantivy.DocAddress]]) -> list[ScoredDocument]:
        stored = read_documents(self._searcher, [address for _, address in hits], self.index_dir.layout)
        return [
            ScoredDocument(score, fields, str(fields.pop(SKETCH_FIELD, "")))
            for (score, _), fields in zip(hits, stored, strict=True)
        ]

    def _to_tantivy_query(self, plan: QueryPlan) -> tantivy.Query:
        import tantivy

        if isinstance(plan, DisMaxClause):
            rows = [self._phrase_query(row) for row in plan.clauses]
            return rows[0] if len(rows) == 1 else tantivy.Query.disjunction_max_query(rows, plan.tie_breaker)
        if isinstance(plan, ConstantClause):
            return tantivy.Query.const_score_query(self._to_tantivy_query(plan.clause), plan.score)
        if isinstance(plan, FilterClause):
            term = tantivy.Query.term_query(self.schema, plan.field, plan.term, "basic")
            return tantivy.Query.const_score_query(term, FILTER_SCORE)
        if isinstance(plan, MatchAllClause):
            return tantivy.Query.all_query()
        clauses = [(tantivy.Occur.Must, self._to_tantivy_query(part)) for part in plan.must]
        clauses += [(tantivy.Occur.Should, self._to_tantivy_query(part)) for part in plan.should]
        clauses += [(tantivy.Occur.MustNot, self._to_tantivy_query(part)) for part in plan.must_not]
        return tantivy.Query.boolean_query(clauses, plan.minimum_match or None)

    def _phrase_query(self, row: PhraseClause | PrefixClause) -> tantivy.Query:
        import tantivy

        if isinstance(row, PrefixClause):
            query = tantivy.Query.regex_query(self.schema, row.field, f"{re.escape(row.prefix)}.*")
        elif len(row.terms) == 1:
            query = tantivy.Query.term_query(self.schema, row.field, row.terms[0])
        else:
            query = tantivy.Query.phrase_query(self.schema, row.field, [*row.terms])
        return query if row.weight == 1.0 else tantivy.Query.boost_query(query, row.weight)


def _total_hits(result: tantivy.SearchResult) -> int:
    total: int | None = result.count  # type: ignore[attr-defined]  # the stub lacks it
    return total or 0


def _sort_counts(buckets: Iterable[dict[str, Any]]) -> list[tuple[str, int]]:
    counted = [(str(each["key"]), int(each["doc_count"])) for each in buckets]
    return sorted(counted, key=lambda pair: (-pair[1], pair[0]))
