"""EmbeddedSearcher: queries of the embedded index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nutch2py.backends.index_folder import FACET, FACETS, NEAR, WEIGHT_BUCKETS, IndexFolder, unit_of
from nutch2py.backends.index_reading import places, stored_documents
from nutch2py.backends.languages import CODES
from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.search.beginnings import FIELDS, Beginning
from nutch2py.search.collapse import collapse_of
from nutch2py.search.facets import COUNTED, Counted
from nutch2py.search.freshness import Aging, Freshness
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
from nutch2py.search.results import Found, texts_of
from nutch2py.search.server_searcher import Answered

if TYPE_CHECKING:
    import tantivy


_LOOKED_AT = 200  # best hits whose values are offered as facets, of an index without columns of them; or whose dates
_VALUES = 30


class EmbeddedSearcher:
    """Answers queries from the index as of its last commit, as :mod:`nutch2py.search.plan` has them found and ranked.

    Relevance is BM25 and is multiplied by the document's weight (boost and PageRank) for every match, not for the best
    ones only, so the order is exact. One object can answer any number of queries, from one thread at a time;
    :meth:`reload` shows it newer commits.
    """

    def __init__(self, conf: Configuration) -> None:
        self.folder = IndexFolder.of(conf)
        self.analyzer = self.folder.analyzer
        self.index = self.folder.open_to_read()
        self.index.config_reader("manual")
        self.schema = self.index.schema
        self._rules, self._aging, self.collapse = Rules.of(conf), Aging(conf), collapse_of(conf)
        self._searcher = self.index.searcher()
        self.planner = self._planner()

    def _planner(self) -> Planner:
        asked = {code: self._searcher.doc_freq("exact", f"lang={code}") for code in sorted(CODES)}
        return Planner(self._rules, self.analyzer, known_languages(asked))

    def reload(self) -> None:
        """See what has been committed since the index was opened."""
        self.folder.renew()
        self.index.reload()
        self._searcher = self.index.searcher()
        self.planner = self._planner()

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._searcher.num_docs)

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of one document, None when it is not in the index."""
        place = self._place(document_id)
        return self._founds([(0.0, place)])[0].fields if place is not None else None

    def _place(self, document_id: str) -> tantivy.DocAddress | None:
        return next((place for _, place in places(self._searcher, self.schema, [document_id])), None)

    def search(
        self, query: str, start: int = 0, rows: int = 10, narrowed: Narrowed = NOT_NARROWED
    ) -> tuple[int, list[Found], frozenset[str]]:
        """Return how many documents match, those from ``start`` on, and the terms to mark in them."""
        found, terms = self.walk(query, start, rows, narrowed)
        return found.total, found.hits, terms

    def walk(
        self, query: str, start: int, rows: int, narrowed: Narrowed = NOT_NARROWED, cursor: str = ""
    ) -> tuple[Answered, frozenset[str]]:
        """Return hits from ``start`` on, or from a ``cursor`` on ("*": the first), with that of the hits behind."""
        fresh, cursor = (None, cursor) if narrowed.newest else self._fresh(narrowed.half_life, cursor)
        if cursor and cursor != "*":
            if not cursor.isdecimal() or len(cursor) > 9:
                raise InputError("the cursor is not one that was given with a result")
            start = int(cursor)
        planned = self.planner.plan(query)
        if planned.plan is None:
            return Answered(0, []), planned.terms
        if narrowed.newest and self.folder.layout == 1:
            raise InputError(
                f"the index {self.folder.path} is of the first layout and cannot sort by date: index -reindex"
            )
        compiled = self._compile(narrowed.applied(planned.plan, self.planner))
        try:
            total, best = self._best(compiled, start, rows, narrowed.newest, fresh)
            hits = self._founds(best)
        except (ValueError, OSError) as error:
            raise IndexingError(f"the index {self.folder.path} cannot be searched: {error}") from error
        behind = str(start + len(hits)) if hits and start + len(hits) < total else ""
        return Answered(total, hits, fresh.behind(behind) if fresh else behind), planned.terms

    def _fresh(self, half_life: float | None, cursor: str = "") -> tuple[Freshness | None, str]:
        """Return the freshness of a search and its cursor; one of the first layout has no dates to count."""
        if self.folder.layout == 1:
            self._aging.at(half_life)  # which says what is no half-life
            return None, cursor
        return self._aging.at(half_life, cursor)

    def _best(
        self, query: tantivy.Query, start: int, rows: int, newest: bool, fresh: Freshness | None
    ) -> tuple[int, list[tuple[float, tantivy.DocAddress]]]:
        """Return how many documents match, and those from ``start`` on: score and place."""
        import tantivy

        if newest:
            found = self._searcher.search(
                query, max(rows, 1), offset=start, order=tantivy.Order.Desc, order_by_field="date"
            )
            return _total(found), [(0.0, address) for _, address in found.hits[:rows]]
        query = self._weighted(query)
        if fresh is None:
            found = self._searcher.search(query, max(rows, 1), offset=start, weight_by_field="weight")
            return _total(found), found.hits[:rows]
        # the factor is 1 at most: behind a hit whose score is that low without it no better one can come
        wanted, looked, documents = start + rows, _LOOKED_AT, self.count()
        while True:
            looked = min(max(looked, wanted, 1), max(documents, 1))
            found = self._searcher.search(query, looked, weight_by_field="weight")
            dates = self._searcher.fast_field_values("date", [address for _, address in found.hits])
            scored = [
                (score * fresh.factor(int(date or 0)), address)
                for (score, address), date in zip(found.hits, dates, strict=True)
            ]
            scored.sort(key=lambda hit: -hit[0])
            all_seen = len(found.hits) < looked or looked >= documents
            if all_seen or not rows or scored[wanted - 1][0] >= found.hits[-1][0]:
                return _total(found), scored[start:wanted]
            looked *= 8

    def facets(self, query: str, narrowed: Narrowed = NOT_NARROWED) -> Counted:
        """Return the most frequent values of :data:`FACETS` among all documents that match, with their numbers.

        An index of an earlier layout has no columns of them: the values are those of the best hits there.
        """
        plan = self.planner.plan(query, ranked=False).plan
        if plan is None:
            return {}
        if self.folder.layout < 3:
            return self._values_of_best(query, plan, narrowed)
        asked = {name: {"terms": {"field": f"{FACET}{name}", "size": COUNTED}} for name in FACETS}
        found = self._searcher.aggregate(self._compile(narrowed.applied(plan, self.planner)), asked)
        return {name: _counted(found[name]["buckets"]) for name in FACETS}

    def aged(self, document: dict[str, Any]) -> str:
        """Return what freshness multiplies the score of a document by, as a line; "" where it does not count."""
        fresh, _ = self._fresh(None)
        return fresh.told(document) if fresh else ""

    def count_matching(self, query: str) -> int:
        """Return how many documents match."""
        plan = self.planner.plan(query, ranked=False).plan
        return 0 if plan is None else _total(self._searcher.search(self._compile(plan), 1))

    def _values_of_best(self, query: str, plan: Plan, narrowed: Narrowed) -> Counted:
        _, hits, _ = self.search(query, 0, _LOOKED_AT, narrowed)
        facets: Counted = {}
        for name in ("host", "type", "lang"):
            seen = Counter(value for hit in hits for value in texts_of(hit.fields, name))
            counted = []
            for value, _ in seen.most_common(_VALUES):
                narrower = narrowed.also(exact_name(name), value).applied(plan, self.planner)
                counted.append((value, _total(self._searcher.search(self._compile(narrower), 1))))
            facets[name] = sorted(counted, key=lambda pair: (-pair[1], pair[0]))
        return facets

    def beginning(self, start: str, most: int) -> list[Beginning]:
        """Return terms of the dictionary that begin so; how they are written is not known."""
        counted: Counter[str] = Counter()
        for field in FIELDS:
            counted.update(dict(self._searcher.terms_with_prefix(field, start, limit=most)))
        return [Beginning(term, count, Counter()) for term, count in counted.most_common(most)]

    def near(self, word: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents with a word in title or content that differs from ``word`` in ``distance`` letters or less.

        ``distance``: 0 to 2, a swap of neighbours being one. At most ``most`` documents, in no order.
        """
        terms = self.analyzer.words(word)
        return self._near(terms[0], distance, most) if len(terms) == 1 else []

    def having(self, term: str, most: int) -> list[dict[str, Any]]:
        """Return documents with a term of the dictionary in title or content."""
        return self._near(term, 0, most)

    def _near(self, term: str, distance: int, most: int) -> list[dict[str, Any]]:
        import tantivy

        query = _boolean(
            [
                (tantivy.Occur.Should, tantivy.Query.fuzzy_term_query(self.schema, field, term, distance))
                for field in FIELDS
            ]
        )
        hits = self._searcher.search(query, most).hits if query is not None else []
        return [each.fields for each in self._founds([(0.0, address) for _, address in hits])]

    def explain(self, query: str, document_id: str) -> str | None:
        """Return how the relevance of a document comes about, as JSON; None when it is not found by the query."""
        plan = self.planner.plan(query).plan
        compiled = self._compile(plan) if plan is not None else None  # the weight is told beside it
        place = self._place(document_id)
        if compiled is None or place is None:
            return None
        try:
            return str(compiled.explain(self._searcher, place).to_json())
        except ValueError:  # the document does not match
            return None

    def _weighted(self, query: tantivy.Query) -> tantivy.Query:
        """Return the query boosted by the unit of each document's bucket; most indexes have one or two buckets."""
        import tantivy

        buckets = [b for b in WEIGHT_BUCKETS if self._searcher.doc_freq("exact", f"weight={b}")]
        units = [unit_of(bucket, self.folder.layout) for bucket in buckets]
        if len(units) < 2:
            return tantivy.Query.boost_query(query, units[0]) if units and units[0] != 1.0 else query
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        parts = []
        for bucket, unit in zip(buckets, units, strict=True):
            term = tantivy.Query.term_query(self.schema, "exact", f"weight={bucket}", "basic")
            inside = tantivy.Query.boolean_query([(must, query), (must, tantivy.Query.const_score_query(term, 0.0))])
            parts.append((should, tantivy.Query.boost_query(inside, unit)))
        return tantivy.Query.boolean_query(parts)

    def _founds(self, hits: list[tuple[float, tantivy.DocAddress]]) -> list[Found]:
        stored = stored_documents(self._searcher, [address for _, address in hits], self.folder.layout)
        return [
            Found(score, fields, str(fields.pop(NEAR, ""))) for (score, _), fields in zip(hits, stored, strict=True)
        ]

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


def _counted(buckets: Iterable[dict[str, Any]]) -> list[tuple[str, int]]:
    counted = [(str(each["key"]), int(each["doc_count"])) for each in buckets]
    return sorted(counted, key=lambda pair: (-pair[1], pair[0]))


def _boolean(clauses: list[tuple[Any, tantivy.Query]]) -> tantivy.Query | None:
    import tantivy

    return tantivy.Query.boolean_query(clauses) if clauses else None
