"""EmbeddedSearcher: queries of the embedded index."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nutch2py.backends.index_folder import WEIGHT_BUCKETS, IndexFolder
from nutch2py.backends.languages import CODES
from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.search.plan import (
    FILTER_SCORE,
    NOT_NARROWED,
    Best,
    Everything,
    Filter,
    Narrowed,
    Plan,
    Planner,
    Row,
    Rules,
    exact_name,
    known_languages,
)
from nutch2py.search.results import Found, values_of
from nutch2py.search.server_searcher import Answered

if TYPE_CHECKING:
    import tantivy


_LOOKED_AT = 200  # best hits whose values are offered as facets


class EmbeddedSearcher:
    """Answers queries from the index as of its last commit, as :mod:`nutch2py.search.plan` has them found and ranked.

    Relevance is BM25 and is multiplied by the document's weight (boost and PageRank) for every match, not for the best
    ones only, so the order is exact. One object can answer any number of queries, from one thread at a time;
    :meth:`reload` shows it newer commits.
    """

    def __init__(self, conf: Configuration) -> None:
        self.folder = IndexFolder.of(conf)
        self.analyzer = self.folder.analyzer
        self.index = self.folder.open()
        self.index.config_reader("manual")
        self.schema = self.index.schema
        self._rules = Rules.of(conf)
        self._searcher = self.index.searcher()
        self.planner = self._planner()

    def _planner(self) -> Planner:
        asked = {code: self._searcher.doc_freq("exact", f"lang={code}") for code in sorted(CODES)}
        return Planner(self._rules, self.analyzer, known_languages(asked))

    def reload(self) -> None:
        """See what has been committed since the index was opened."""
        self.index.reload()
        self._searcher = self.index.searcher()
        self.planner = self._planner()

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._searcher.num_docs)

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of one document, None when it is not in the index."""
        import tantivy

        found = self._searcher.search(tantivy.Query.term_query(self.schema, "id", document_id), 1).hits
        return self._stored(found[0][1]) if found else None

    def search(
        self, query: str, start: int = 0, rows: int = 10, narrowed: Narrowed = NOT_NARROWED
    ) -> tuple[int, list[Found], frozenset[str]]:
        """Return how many documents match, those from ``start`` on, and the terms to mark in them."""
        import tantivy

        planned = self.planner.plan(query)
        if planned.plan is None:
            return 0, [], planned.terms
        compiled = self._compile(narrowed.applied(planned.plan, self.planner))
        if narrowed.newest and self.folder.layout == 1:
            raise InputError(
                f"the index {self.folder.path} is of nutch2py 0.1.0 and cannot sort by date: index -reindex"
            )
        asked: dict[str, Any] = {"order_by_field": "date"} if narrowed.newest else {"weight_by_field": "weight"}
        compiled = compiled if narrowed.newest else self._weighted(compiled)
        try:
            result = self._searcher.search(compiled, max(rows, 1), offset=start, order=tantivy.Order.Desc, **asked)
            hits = [
                Found(0.0 if narrowed.newest else score, self._stored(address)) for score, address in result.hits[:rows]
            ]
        except (ValueError, OSError) as error:
            raise IndexingError(f"the index {self.folder.path} cannot be searched: {error}") from error
        return _total(result), hits, planned.terms

    def walk(
        self, query: str, start: int, rows: int, narrowed: Narrowed = NOT_NARROWED, cursor: str = ""
    ) -> tuple[Answered, frozenset[str]]:
        """Return hits from ``start`` on, or from a ``cursor`` on ("*": the first), with that of the hits behind."""
        if cursor and cursor != "*":
            if not cursor.isdecimal() or len(cursor) > 9:
                raise InputError("the cursor is not one that was given with a result")
            start = int(cursor)
        total, hits, terms = self.search(query, start, rows, narrowed)
        behind = start + len(hits)
        return Answered(total, hits, str(behind) if hits and behind < total else ""), terms

    def facets(
        self, query: str, fields: tuple[str, ...], most: int, narrowed: Narrowed = NOT_NARROWED
    ) -> dict[str, list[tuple[str, int]]]:
        """Return the values that the best hits have; their counts are those of all hits."""
        _, hits, _ = self.search(query, 0, _LOOKED_AT, narrowed)
        facets: dict[str, list[tuple[str, int]]] = {}
        for name in fields:
            seen = Counter(value for hit in hits for value in values_of(hit.fields, name))
            counted = [
                (value, self.count_matching(query, narrowed.also(exact_name(name), value)))
                for value, _ in seen.most_common(most)
            ]
            facets[name] = sorted(counted, key=lambda pair: (-pair[1], pair[0]))
        return facets

    def count_matching(self, query: str, narrowed: Narrowed = NOT_NARROWED) -> int:
        """Return how many documents match."""
        plan = self.planner.plan(query, ranked=False).plan
        if plan is None:
            return 0
        return _total(self._searcher.search(self._compile(narrowed.applied(plan, self.planner)), 1))

    def near(self, word: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents with a word in title or content that differs from ``word`` in ``distance`` letters or less.

        ``distance``: 0 to 2, a swap of neighbours being one. At most ``most`` documents, in no order.
        """
        import tantivy

        terms = self.analyzer.words(word)
        if len(terms) != 1:
            return []
        query = _boolean(
            [
                (tantivy.Occur.Should, tantivy.Query.fuzzy_term_query(self.schema, field, terms[0], distance))
                for field in ("title", "content")
            ]
        )
        hits = self._searcher.search(query, most).hits if query is not None else []
        return [self._stored(address) for _, address in hits]

    def explain(self, query: str, document_id: str) -> str | None:
        """Return how the relevance of a document comes about, as JSON; None when it is not found by the query."""
        import tantivy

        plan = self.planner.plan(query).plan
        compiled = self._weighted(self._compile(plan)) if plan is not None else None
        term = tantivy.Query.term_query(self.schema, "id", document_id, "basic")
        found = self._searcher.search(term, 1).hits
        if compiled is None or not found:
            return None
        try:
            return str(compiled.explain(self._searcher, found[0][1]).to_json())
        except ValueError:  # the document does not match
            return None

    def _weighted(self, query: tantivy.Query) -> tantivy.Query:
        """Return the query boosted by each document's power of 100; most indexes have one or two of these powers."""
        import tantivy

        buckets = [b for b in WEIGHT_BUCKETS if self._searcher.doc_freq("exact", f"weight={b}")]
        if buckets in ([], [0]):
            return query
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        parts = []
        for bucket in buckets:
            term = tantivy.Query.term_query(self.schema, "exact", f"weight={bucket}", "basic")
            inside = tantivy.Query.boolean_query([(must, query), (must, tantivy.Query.const_score_query(term, 0.0))])
            parts.append((should, tantivy.Query.boost_query(inside, 100.0**bucket)))
        return tantivy.Query.boolean_query(parts)

    def _stored(self, address: tantivy.DocAddress) -> dict[str, Any]:
        import orjson

        stored: bytes = self._searcher.doc(address)["document"][0]
        fields: dict[str, Any] = orjson.loads(stored)
        return fields

    def _compile(self, plan: Plan) -> tantivy.Query:
        import tantivy

        if isinstance(plan, Best):
            rows = [self._row(row) for row in plan.rows]
            return rows[0] if len(rows) == 1 else tantivy.Query.disjunction_max_query(rows, plan.tie)
        if isinstance(plan, Filter):
            term = tantivy.Query.term_query(self.schema, plan.field, plan.term, "basic")
            return tantivy.Query.const_score_query(term, FILTER_SCORE)
        if isinstance(plan, Everything):
            return tantivy.Query.all_query()
        clauses = [(tantivy.Occur.Must, self._compile(part)) for part in plan.must]
        clauses += [(tantivy.Occur.Should, self._compile(part)) for part in plan.should]
        clauses += [(tantivy.Occur.MustNot, self._compile(part)) for part in plan.must_not]
        return tantivy.Query.boolean_query(clauses, plan.minimum or None)

    def _row(self, row: Row) -> tantivy.Query:
        import tantivy

        if len(row.terms) == 1:
            found = tantivy.Query.term_query(self.schema, row.field, row.terms[0])
        else:
            found = tantivy.Query.phrase_query(self.schema, row.field, [*row.terms])
        return found if row.weight == 1.0 else tantivy.Query.boost_query(found, row.weight)


def _total(result: tantivy.SearchResult) -> int:
    total: int | None = result.count  # type: ignore[attr-defined]  # the stub lacks it
    return total or 0


def _boolean(clauses: list[tuple[Any, tantivy.Query]]) -> tantivy.Query | None:
    import tantivy

    return tantivy.Query.boolean_query(clauses) if clauses else None
