"""EmbeddedSearcher: searches one commit of the embedded index."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from nutch2py.backends.analysis.stemming import LANGUAGE_CODES
from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.embedded_index.index_directory import IndexDirectory
from nutch2py.backends.embedded_index.weight_buckets import WEIGHT_BUCKETS, bucket_boost
from nutch2py.backends.index_fields import FACET_PREFIX
from nutch2py.backends.vectors.vector_matrix import VectorMatrix
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, QueryError
from nutch2py.search.engines.embedded_commit import EmbeddedCommit
from nutch2py.search.engines.explanation_tree import format_tree
from nutch2py.search.engines.plan_searcher import EngineResult, HitRequest, PlanSearcher
from nutch2py.search.hybrid.hybrid_ranker import Neighbours, any_id
from nutch2py.search.query.freshness import Freshness
from nutch2py.search.query.query_plan import (
    DEFAULT_SEARCH_OPTIONS,
    FILTER_SCORE,
    BooleanClause,
    ConstantClause,
    DisMaxClause,
    FilterClause,
    IndexTerm,
    MatchAllClause,
    PhraseClause,
    PlannedQuery,
    PrefixClause,
    QueryPlan,
    SearchOptions,
    exact_field_name,
    indexed_languages,
    make_filter,
    matching_plan,
)
from nutch2py.search.query.query_planner import QueryPlanner
from nutch2py.search.query.search_cost import estimate_search, scale_limit
from nutch2py.search.query.search_cursor import invalid_cursor
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, FacetCounts
from nutch2py.search.results.search_results import ScoredDocument, field_values, first_value
from nutch2py.search.suggestions.prefix_terms import PrefixTerm
from nutch2py.search.suggestions.spelling import SpellingCorrector
from nutch2py.search.suggestions.suggester import SuggestionCache
from nutch2py.support.reporting import warn

if TYPE_CHECKING:
    import tantivy


_BEST_HITS = 200  # best hits read for facets without columns, and first for freshness
_MAX_VALUES = 30
MAX_FILTERED = 1_000
"""Documents of a filter that are read, so that the nearest among them are found."""
_MAX_NEAREST = 4_000  # nearest documents that are compared with another filter
_VECTORS_LOCK = threading.Lock()
"""One thread loads the vectors of a commit while others that need them wait."""
_EXPENSIVE_SEARCHES = threading.BoundedSemaphore(max(1, (os.cpu_count() or 1) - 1))
"""Expensive searches run on all CPUs but one, so that they do not delay the others."""


class ExpensivePlanError(Exception):
    """A search would cost more than allowed."""


class EmbeddedSearcher(PlanSearcher):
    """Searches the commit that was the last one when the object was created; several threads may use it.

    Relevance is BM25, multiplied by the document's weight (boost and PageRank) for every match, so that the order is
    exact. :meth:`reopen` returns a searcher of the current commit.
    """

    def __init__(self, conf: Configuration) -> None:
        self.index_dir = IndexDirectory.from_conf(conf)
        super().__init__(conf, self.index_dir.analyzer)
        self.index = self.index_dir.open_readonly()
        self.index.config_reader("manual")
        self._expensive_millis = conf.get_float("search.worker.min.millis", 75.0)
        self._vectors: tuple[object, VectorMatrix] | None = None  # with the version of their file
        self._vectors_before: tuple[object, VectorMatrix] | None = None  # of the commit before
        self._use_commit()

    def _use_commit(self) -> None:
        """Take the loaded commit of the index; a searcher of tantivy keeps the files of its commit."""
        self.schema, self._searcher = self.index.schema, self.index.searcher()
        self._commit = commit = EmbeddedCommit(self._searcher, self.schema, self.index_dir.layout)
        counts = {code: self._searcher.doc_freq("exact", f"lang={code}") for code in sorted(LANGUAGE_CODES)}
        languages = indexed_languages(counts, self._searcher.num_docs)
        corrector = SpellingCorrector(commit, self.analyzer, languages)
        self._planner = QueryPlanner(self._settings, self.analyzer, languages, commit, corrector)
        self._suggestion_cache = SuggestionCache()  # other documents have other terms
        self._vectors_before, self._vectors = self._vectors or self._vectors_before, None
        self._weight_units = [
            (bucket, bucket_boost(bucket, self.index_dir.layout))
            for bucket in WEIGHT_BUCKETS
            if self._searcher.doc_freq("exact", f"weight={bucket}")
        ]

    def reopen(self) -> Self:
        """Return a searcher of the current commit; this one keeps its own."""
        self.index_dir.refresh_view()
        self.index.reload()
        reopened = copy(self)
        reopened._use_commit()
        return reopened

    @property
    def planner(self) -> QueryPlanner:
        """The planner for the languages of the commit."""
        return self._planner

    @property
    def suggestion_cache(self) -> SuggestionCache:
        """Terms and spellings of the commit."""
        return self._suggestion_cache

    def count(self) -> int:
        """Return the number of documents."""
        return self._commit.count()

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""
        return self._commit.document_frequencies(terms)

    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return up to ``limit`` documents with words that start alike and may differ from ``word`` by two edits."""
        return self._commit.similar_documents(word, limit)

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        return self._commit.documents_with_term(term, limit)

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return the terms of the dictionary with a prefix; their original spelling is unknown."""
        return self._commit.prefix_terms(prefix, limit)

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of one document, None when it is not in the index."""
        address = self._commit.find_address(document_id)
        return self._commit.read_hits([(0.0, address)])[0].fields if address is not None else None

    def _find_nearest(self, request: Neighbours) -> list[ScoredDocument]:
        import numpy as np

        matrix = self._load_vectors(request.vector.shape[0])
        if matrix is None or not matrix.ids:
            return []
        similarities = matrix.similarities(request.vector)
        if request.filter is not None and (few := self._filtered_ids(request.filter)) is not None:
            allowed = np.fromiter((each in few for each in matrix.ids), bool, len(matrix.ids))
            similarities[~allowed] = -2.0
        candidates = np.flatnonzero(similarities >= request.min_similarity)
        candidates = candidates[np.argsort(-similarities[candidates], kind="stable")][:_MAX_NEAREST]
        found: list[ScoredDocument] = []
        at, step = 0, request.rows
        while len(found) < request.rows and at < len(candidates):
            # Most candidates are hits, except those that a filter excludes.
            part = {matrix.ids[row]: row for row in candidates[at : at + step].tolist()}
            plan = any_id([*part]) if request.filter is None else BooleanClause((any_id([*part]), request.filter))
            hits = self._find(HitRequest(plan, rows=len(part))).hits
            documents = {first_value(each.fields, "id"): each for each in hits}
            for document_id, row in part.items():
                document = documents.get(document_id)
                # A vector of another version of the page is one that the next index job replaces.
                if document is not None and first_value(document.fields, "digest") == matrix.signatures[row]:
                    found.append(document._replace(score=float(similarities[row])))
            at, step = at + step, step * 4
        return found[: request.rows]

    def _filtered_ids(self, plan: QueryPlan) -> frozenset[str] | None:
        """Return the ids of the documents that match a filter, None when there are many."""
        if self._count_plan(plan) > MAX_FILTERED:
            return None
        hits = self._find(HitRequest(plan, rows=MAX_FILTERED)).hits
        return frozenset(first_value(each.fields, "id") for each in hits)

    def _load_vectors(self, dimensions: int) -> VectorMatrix | None:
        """Return the vectors of the commit, which the first search by vectors loads; None without an encoder."""
        if self._hybrid is None:
            return None
        with _VECTORS_LOCK:
            if self._vectors is None:
                store, model = self.index_dir.vectors, self._hybrid.encoder.model
                version = store.version()
                if self._vectors_before is not None and self._vectors_before[0] == version:
                    self._vectors = self._vectors_before
                else:
                    try:
                        matrix = VectorMatrix.load(store, model, dimensions)
                    except IndexingError as error:
                        warn(f"{error}: queries are searched by words")
                        matrix = VectorMatrix.empty(dimensions)
                    else:
                        if not matrix.ids:
                            warn(f"no page of {self.index_dir.path} has a vector of {model}: run index -reindex")
                    self._vectors = version, matrix
                self._vectors_before = None
            return self._vectors[1]

    def close(self) -> None:
        """Nothing to close: files are closed with the last searcher of their commit."""

    def _find_problem(self) -> str:
        return "" if self.count() else f"the index {self.index_dir.path} is empty: run nutch2py crawl or index first"

    def _find(self, request: HitRequest) -> EngineResult:
        plan, start = request.plan, request.start
        if request.cursor and request.cursor != "*":
            if not request.cursor.isdecimal() or len(request.cursor) > 9:
                raise invalid_cursor()
            start = min(int(request.cursor), self.count())  # memory is reserved for the hits before it
        if request.newest_first and self.index_dir.layout == 1:
            raise QueryError(
                f"the index {self.index_dir.path} is of the first layout and cannot sort by date: run index -reindex",
                "This index cannot sort by date.",
            )
        try:
            if not request.rows and not request.facets:
                return EngineResult(self._count_plan(plan), [])
            query = self._to_tantivy_query(plan)
            total, best = self._find_best(query, start, request.rows, request.newest_first, request.freshness)
            hits = self._commit.read_hits(best, request.max_characters)
            facets = self._count_facets(plan, request.facets) if request.facets else None
        except (ValueError, OSError) as error:
            raise IndexingError(f"the index {self.index_dir.path} cannot be searched: {error}") from error
        next_cursor = str(start + len(hits)) if hits and start + len(hits) < total else ""
        return EngineResult(total, hits, next_cursor, facets)

    def _resolve_freshness(self, half_life: float | None, cursor: str = "") -> tuple[Freshness | None, str]:
        resolved = super()._resolve_freshness(half_life, "" if self.index_dir.layout == 1 else cursor)
        return (None, cursor) if self.index_dir.layout == 1 else resolved  # the first layout has no dates

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

    def _count_facets(self, plan: QueryPlan, names: Sequence[str]) -> FacetCounts:
        """Return the most frequent values of facets among all matching documents, with their counts.

        An index of an earlier layout has no columns for them: there the values are those of the best hits.
        """
        plan = matching_plan(plan)
        if self.index_dir.layout < 3:
            return self._count_values_of_best(plan)
        aggregations = {
            name: {"terms": {"field": f"{FACET_PREFIX}{name}", "size": MAX_COUNTED_VALUES}} for name in names
        }
        found = self._searcher.aggregate(self._to_tantivy_query(plan), aggregations)
        return {name: _sort_counts(found[name]["buckets"]) for name in names}

    def _count_plan(self, plan: QueryPlan) -> int:
        return _total_hits(self._searcher.search(self._to_tantivy_query(matching_plan(plan)), 1))

    def _admit(self, plan: QueryPlan, rows: int) -> AbstractContextManager[object]:
        is_expensive = estimate_search(plan, rows, self._commit) > self.expensive_millis
        return _EXPENSIVE_SEARCHES if is_expensive else nullcontext()

    @property
    def expensive_millis(self) -> float:
        """Estimated milliseconds of CPU time from which a search of this index is expensive."""
        return scale_limit(self._expensive_millis, self.count())

    def plan_cheap_search(self, query: str, rows: int, options: SearchOptions) -> PlannedQuery:
        """Return the plan of a query; raise ExpensivePlanError before anything expensive is run."""

        def check(plan: QueryPlan) -> None:
            if estimate_search(plan, rows, self._commit) > self.expensive_millis:
                raise ExpensivePlanError

        planned = self._plan(query, options, check)
        if planned.plan is not None:
            check(planned.plan)
        return planned

    def _count_values_of_best(self, plan: QueryPlan) -> FacetCounts:
        hits = self._find(HitRequest(plan, 0, _BEST_HITS)).hits
        facets: FacetCounts = {}
        for name in ("host", "type", "lang"):
            seen = Counter(value for hit in hits for value in field_values(hit.fields, name))
            counted = []
            for value, _ in seen.most_common(_MAX_VALUES):
                narrower = BooleanClause(must=(plan, make_filter(exact_field_name(name), value)))
                counted.append((value, self._count_plan(narrower)))
            facets[name] = sorted(counted, key=lambda pair: (-pair[1], pair[0]))
        return facets

    def _explain_words(self, query: str, document_id: str) -> str | None:
        """Return BM25's parts as an indented tree, and the weight."""
        plan = self._plan(query, DEFAULT_SEARCH_OPTIONS).plan
        address = self._commit.find_address(document_id)
        if plan is None or address is None:
            return None
        try:
            explanation = self._to_tantivy_query(plan).explain(self._searcher, address).to_json()
        except ValueError:  # the document does not match
            return None
        fields = self._commit.read_hits([(0.0, address)])[0].fields
        powers = DocumentWeights(self.conf).powers
        weight = " · ".join(f"({name} {fields.get(name, '1')}) ^ {power:g}" for name, power in powers.items()) or "1"
        fresh, _ = self._resolve_freshness(None)
        rule = f" × freshness\n{fresh.explain(fields)}" if fresh else ""
        tree = "\n".join(format_tree(json.loads(explanation)))
        return f"score = relevance × weight{rule}\nweight: {weight}\nrelevance:\n{tree}"

    def _weighted_query(self, query: tantivy.Query) -> tantivy.Query:
        """Return the query boosted by the boost of each document's bucket; most indexes have one or two buckets."""
        import tantivy

        units = self._weight_units
        if len(units) < 2:
            return tantivy.Query.boost_query(query, units[0][1]) if units and units[0][1] != 1.0 else query
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        parts = []
        for bucket, unit in units:
            term = tantivy.Query.term_query(self.schema, "exact", f"weight={bucket}", "basic")
            inside = tantivy.Query.boolean_query([(must, query), (must, tantivy.Query.const_score_query(term, 0.0))])
            parts.append((should, tantivy.Query.boost_query(inside, unit)))
        return tantivy.Query.boolean_query(parts)

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
            query = self._commit.prefix_query(row)
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
