"""HybridRanker: fuses the hits of a query's words with the pages whose vectors are nearest to the query's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nutch2py.backends.encoders.encoder_selection import TextEncoder, open_encoder
from nutch2py.conf.configuration import Configuration
from nutch2py.search.hybrid.rank_fusion import RANK_CONSTANT, FusedHit, fuse_ranks, rank_score
from nutch2py.search.query.query_plan import (
    BooleanClause,
    FilterClause,
    MatchAllClause,
    QueryPlan,
    SearchOptions,
    matching_plan,
)
from nutch2py.search.results.facets import FacetCounts
from nutch2py.search.results.search_results import ScoredDocument, first_value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VECTOR_WEIGHT_PROPERTY = "index.search.vector.weight"
FUSED_HITS = 100
"""Hits of each order that are fused. Later hits are in the order of words."""
_FULL_WEIGHT_WORDS = 8
"""Words of a query from which vectors have their full weight: for some keywords the pages that have them are better."""
_CACHED_QUERIES = 256


class Neighbours(NamedTuple):
    """Request for the documents nearest to a vector.

    Attributes:
        vector: A vector of length 1.
        min_similarity: Smallest cosine.
        filter: Plan that the documents match; None for all documents.
        rows: Number of documents.

    """

    vector: NDArray[np.float32]
    min_similarity: float
    filter: QueryPlan | None
    rows: int


class EnginePage(NamedTuple):
    """Hits of a plan: total, documents and facets."""

    total: int
    hits: list[ScoredDocument]
    facets: FacetCounts | None = None


class PlanEngine(Protocol):
    """Runs plans for one search, with its order and freshness."""

    def find(self, plan: QueryPlan, start: int, rows: int, facets: tuple[str, ...] = ()) -> EnginePage:
        """Return hits of a plan by words."""

    def find_nearest(self, request: Neighbours) -> list[ScoredDocument]:
        """Return the nearest documents, each with its cosine as score."""


class HybridRanker:
    """Encodes queries, and ranks by words and vectors. ``encoder``: the encoder of ``index.encoder``."""

    def __init__(self, encoder: TextEncoder, vector_weight: float) -> None:
        self.encoder, self._vector_weight = encoder, vector_weight
        self._encode = lru_cache(maxsize=_CACHED_QUERIES)(encoder.encode_query)

    @classmethod
    def from_conf(cls, conf: Configuration) -> HybridRanker | None:
        """Return the ranker of a configuration; None without an encoder, or when vectors have no weight."""
        weight = conf.get_float(VECTOR_WEIGHT_PROPERTY, 0.5)
        encoder = open_encoder(conf) if weight > 0 else None
        return cls(encoder, weight) if encoder is not None else None

    def weight_of(self, words: int) -> float:
        """Return the weight of vectors for a query with a number of words, next to 1 for words."""
        return self._vector_weight * min(1.0, words / _FULL_WEIGHT_WORDS) ** 2

    def start(
        self, engine: PlanEngine, text: str, words: int, plan: QueryPlan, filters: Sequence[FilterClause]
    ) -> HybridSearch:
        """Return the search of a query: its text and number of words, the plan of its words, and its own filters."""
        return HybridSearch(
            engine, self._encode(text), self.encoder.min_similarity, self.weight_of(words), plan, tuple(filters)
        )


class HybridSearch:
    """The fused hits of one query."""

    def __init__(
        self,
        engine: PlanEngine,
        vector: NDArray[np.float32],
        min_similarity: float,
        vector_weight: float,
        plan: QueryPlan,
        filters: tuple[FilterClause, ...],
    ) -> None:
        self._engine, self._vector, self._min_similarity = engine, vector, min_similarity
        self._weight, self._plan, self._filters = vector_weight, plan, filters
        self._find_fused = lru_cache(maxsize=1)(self._fuse)  # collapsing reads several pages of one order

    def find(self, options: SearchOptions, start: int, rows: int, facets: tuple[str, ...] = ()) -> EnginePage:
        """Return hits from ``start`` on. Total and facets count pages with a word and the nearest pages."""
        fused = self._find_fused(options)
        if not fused.near_documents:
            return self._engine.find(fused.plan, start, rows, facets)
        total, counted = fused.total, None
        if facets or total is None:
            counts = self._engine.find(fused.union_plan(), 0, 0, facets)
            total, counted = counts.total, counts.facets
        hits = [fused.document(hit) for hit in fused.hits[start : start + rows]]
        missing = min(rows, max(0, total - start)) - len(hits)
        if missing > 0 and len(fused.word_documents) == FUSED_HITS:
            behind = max(0, start - len(fused.hits))
            rest = self._engine.find(fused.remaining_plan(), FUSED_HITS + behind, missing).hits
            lowest, first = fused.hits[-1].score, FUSED_HITS + behind + 1
            hits += [each._replace(score=min(lowest, rank_score(rank))) for rank, each in enumerate(rest, first)]
        return EnginePage(total, hits, counted)

    def explain(self, document_id: str) -> str:
        """Return how the ranks of a document make its score; "" for a document outside of the fused hits."""
        fused = self._find_fused(SearchOptions())
        hit = next((hit for hit in fused.hits if hit.document_id == document_id), None)
        if hit is None or not fused.near_documents:
            return ""
        constant = RANK_CONSTANT
        parts = []
        if hit.word_rank:
            parts.append(f"{constant + 1} / ({constant} + {hit.word_rank}) (rank {hit.word_rank} by words)")
        if hit.vector_rank:
            cosine = fused.near_documents[document_id].score
            parts.append(
                f"{self._weight:.3g} × {constant + 1} / ({constant} + {hit.vector_rank}) "
                f"(rank {hit.vector_rank} by vectors, cosine {cosine:.3f})"
            )
        return f"hybrid score = {hit.score:.6g} = {' + '.join(parts)}"

    def _fuse(self, options: SearchOptions) -> _FusedHits:
        plan = options.apply_to(self._plan)
        restriction = options.apply_to(BooleanClause(must=self._filters) if self._filters else MatchAllClause())
        needed = None if isinstance(restriction, MatchAllClause) else restriction
        near = (
            self._engine.find_nearest(Neighbours(self._vector, self._min_similarity, needed, FUSED_HITS))
            if self._vector.any()
            else []
        )
        if not near:
            return _FusedHits(plan, 0, {}, {}, [])
        found = self._engine.find(plan, 0, FUSED_HITS)
        words = {first_value(each.fields, "id"): each for each in found.hits}
        nearest = {first_value(each.fields, "id"): each for each in near}
        total = found.total if nearest.keys() <= words.keys() else None
        return _FusedHits(plan, total, words, nearest, fuse_ranks([*words], [*nearest], self._weight))


class _FusedHits(NamedTuple):
    """The best documents by words and by vectors, and their common order.

    ``total``: number of pages with a word or among the nearest ones; None when it must be counted.
    """

    plan: QueryPlan
    total: int | None
    word_documents: dict[str, ScoredDocument]
    near_documents: dict[str, ScoredDocument]
    hits: list[FusedHit]

    def document(self, hit: FusedHit) -> ScoredDocument:
        """Return the document of a hit with the score of its ranks."""
        found = self.word_documents.get(hit.document_id) or self.near_documents[hit.document_id]
        return found._replace(score=hit.score)

    def union_plan(self) -> QueryPlan:
        """Return the plan of all pages with a word, and of the nearest ones."""
        if not self._added_ids:
            return self.plan
        return BooleanClause(should=(matching_plan(self.plan), any_id(self._added_ids)), minimum_match=1)

    def remaining_plan(self) -> QueryPlan:
        """Return the plan of the words without the pages that vectors have added to the best ones by words."""
        return BooleanClause(must=(self.plan,), must_not=(any_id(self._added_ids),)) if self._added_ids else self.plan

    @property
    def _added_ids(self) -> list[str]:
        return [each for each in self.near_documents if each not in self.word_documents]


def any_id(ids: Sequence[str]) -> QueryPlan:
    """Return a plan of the documents with one of some ids."""
    return BooleanClause(should=tuple(FilterClause("id", each) for each in ids), minimum_match=1)
