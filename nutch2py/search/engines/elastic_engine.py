"""ElasticEngine: plans in the JSON of OpenSearch and Elasticsearch."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote

from nutch2py.backends.embedded_index.index_directory import SKETCH_FIELD, TERMS_PREFIX
from nutch2py.backends.servers.server_retry import RequestRejectedError
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.indexer.search_fields import DocumentWeights
from nutch2py.indexer.writers.elastic_writer import ElasticIndexWriter, elastic_document_id
from nutch2py.search.engines.explanation_tree import format_tree
from nutch2py.search.engines.server_searcher import MAX_RESPONSE_SECONDS, MAX_RETRY_SECONDS, EngineResult, server_field
from nutch2py.search.query.freshness import Freshness
from nutch2py.search.query.query_plan import (
    FILTER_SCORE,
    DisMaxClause,
    FilterClause,
    MatchAllClause,
    PhraseClause,
    QueryPlan,
)
from nutch2py.search.results.search_results import ScoredDocument

_MAX_RESULT_WINDOW = 10_000
"""``index.max_result_window``: hits behind are reached by a cursor only."""
_SAMPLE_FIELDS = ["id", "title", "content", "lang"]  # of pages that tell how words are written
_SCORE_SORT: list[dict[str, str]] = [{"_score": "desc"}, {"id": "asc"}]
_DATE_FIELD = f"{TERMS_PREFIX}date"
_DATE_SORT: list[dict[str, str]] = [{_DATE_FIELD: "desc"}, {"id": "asc"}]


class ElasticEngine:
    """The index ``elastic.index`` at ``elastic.host``; relevance is multiplied by the weight as it was sent."""

    def __init__(self, conf: Configuration) -> None:
        settings = ElasticIndexWriter(conf)
        self._weight_line = f"{TERMS_PREFIX}weight: {DocumentWeights(conf)}, as the page was sent"
        self.client = settings.create_client(min(settings.timeout, MAX_RESPONSE_SECONDS), MAX_RETRY_SECONDS)

    @property
    def url(self) -> str:
        """The address."""
        return self.client.url

    def find(
        self,
        plan: QueryPlan,
        start: int,
        rows: int,
        newest_first: bool = False,
        cursor: str = "",
        freshness: Freshness | None = None,
    ) -> EngineResult:
        """Return hits."""
        if not cursor and start + rows > _MAX_RESULT_WINDOW:
            if start >= _MAX_RESULT_WINDOW:
                total = self.find(plan, 0, 0).total
                if total > start:
                    raise InputError(
                        f"results behind the first {_MAX_RESULT_WINDOW:,} of {self.url} are reached by a cursor only"
                    )
                return EngineResult(total, [], "")
            rows = _MAX_RESULT_WINDOW - start
        question: dict[str, Any] = {
            "query": _ranked_query(plan, freshness),
            "size": rows,
            "sort": _DATE_SORT if newest_first else _SCORE_SORT,
            "track_total_hits": True,
            "docvalue_fields": [SKETCH_FIELD],
        }
        if cursor and cursor != "*":
            question["search_after"] = _decode_cursor(cursor)
        elif not cursor:
            question["from"] = start
        found = self._post("/_search", question)["hits"]
        hits = [
            ScoredDocument(
                0.0 if newest_first else float(hit["_score"] or 0.0),
                hit["_source"],
                *hit.get("fields", {}).get(SKETCH_FIELD, ())[:1],
            )
            for hit in found["hits"]
        ]
        following = _encode_cursor(found["hits"][-1]["sort"]) if hits and len(hits) == rows else ""
        return EngineResult(int(found["total"]["value"]), hits, following)

    def count_values(self, plan: QueryPlan, fields: tuple[str, ...], limit: int) -> dict[str, list[tuple[str, int]]]:
        """Return values."""
        asked = {name: {"terms": {"field": name, "size": limit}} for name in fields}
        found = self._post("/_search", {"query": to_elastic_query(plan), "size": 0, "aggs": asked}).get(
            "aggregations", {}
        )
        return {
            name: [(str(each["key"]), int(each["doc_count"])) for each in found.get(name, {}).get("buckets", ())]
            for name in fields
        }

    def fuzzy_documents(self, term: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents."""
        fuzzy = [
            {"fuzzy": {f"{TERMS_PREFIX}{field}": {"value": term, "fuzziness": distance}}}
            for field in ("title", "content")
        ]
        question = {"query": {"bool": {"should": fuzzy}}, "size": limit, "_source": _SAMPLE_FIELDS}
        return [hit["_source"] for hit in self._post("/_search", question)["hits"]["hits"]]

    def prefix_documents(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        """Return documents."""
        begun = [{"prefix": {f"{TERMS_PREFIX}{field}": {"value": prefix}}} for field in ("title", "content")]
        question = {
            "query": _multiply_by_weight({"bool": {"should": begun}}),
            "size": limit,
            "sort": _SCORE_SORT,
            "_source": _SAMPLE_FIELDS,
        }
        return [hit["_source"] for hit in self._post("/_search", question)["hits"]["hits"]]

    def count_phrases(self, phrases: list[PhraseClause]) -> list[int]:
        """Return how many documents have each row."""
        asked = {str(i): _phrase_query(row) for i, row in enumerate(phrases)}
        question = {"size": 0, "aggs": {"rows": {"filters": {"filters": asked}}}}
        found = self._post("/_search", question)["aggregations"]["rows"]["buckets"]
        return [int(found[str(i)]["doc_count"]) for i in range(len(phrases))]

    def explain(self, plan: QueryPlan, document_id: str, freshness: Freshness | None = None) -> str | None:
        """Return the server's explanation."""
        question = {"query": _ranked_query(plan, freshness)}
        try:
            told = self.client.post_json(f"/_explain/{quote(elastic_document_id(document_id), safe='')}", question)
        except RequestRejectedError as refusal:
            if refusal.status == 404:
                return None
            raise self._to_error(refusal) from refusal
        return "\n".join([self._weight_line, *format_tree(told["explanation"])]) if told.get("matched") else None

    def close(self) -> None:
        """Give back the connections."""
        self.client.close()

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.client.post_json(path, body)
        except RequestRejectedError as refusal:
            raise self._to_error(refusal) from refusal

    def _to_error(self, rejection: RequestRejectedError) -> Exception:
        if rejection.status == 404:
            return IndexingError(f"there is no index {self.url}: run index first, or correct elastic.index")
        if rejection.status == 400:
            return InputError(f"the search server does not understand the query: {rejection}")
        return IndexingError(f"the index {self.url} does not answer: {rejection} (HTTP {rejection.status})")


def _ranked_query(plan: QueryPlan, freshness: Freshness | None = None) -> dict[str, Any]:
    query = _multiply_by_weight(to_elastic_query(plan))
    if freshness is None:
        return query
    decay = {_DATE_FIELD: {"origin": freshness.now, "scale": freshness.half_life, "decay": 0.5}}
    dated = {"exists": {"field": _DATE_FIELD}}  # without a date the decay would be 1
    functions = [{"weight": 1 - freshness.share}, {"filter": dated, "exp": decay, "weight": freshness.share}]
    summed = {"query": query, "functions": functions, "score_mode": "sum", "boost_mode": "multiply"}
    return {"function_score": summed}


def _multiply_by_weight(query: dict[str, Any]) -> dict[str, Any]:
    factor = {"field": f"{TERMS_PREFIX}weight", "missing": 1}
    return {"function_score": {"query": query, "field_value_factor": factor, "boost_mode": "multiply"}}


def to_elastic_query(plan: QueryPlan) -> dict[str, Any]:
    """Return a plan in the server's JSON.

    >>> query_of(Filter("exact", "lang=en"))
    {'constant_score': {'filter': {'term': {'terms_exact': 'lang=en'}}, 'boost': 0.001}}
    """
    if isinstance(plan, FilterClause):
        return {"constant_score": {"filter": {"term": {server_field(plan): plan.term}}, "boost": FILTER_SCORE}}
    if isinstance(plan, DisMaxClause):
        return {"dis_max": {"queries": [_phrase_query(row) for row in plan.clauses], "tie_breaker": plan.tie_breaker}}
    if isinstance(plan, MatchAllClause):
        return {"match_all": {}}
    made: dict[str, Any] = {}
    for name, parts in (("must", plan.must), ("should", plan.should), ("must_not", plan.must_not)):
        if parts:
            made[name] = [to_elastic_query(part) for part in parts]
    made["minimum_should_match"] = plan.minimum_match
    return {"bool": made}


def _phrase_query(row: PhraseClause) -> dict[str, Any]:
    if len(row.terms) == 1:
        return {"term": {server_field(row): {"value": row.terms[0], "boost": row.weight}}}
    return {"match_phrase": {server_field(row): {"query": " ".join(row.terms), "boost": row.weight}}}


def _encode_cursor(sort_values: list[Any]) -> str:
    import orjson

    return base64.urlsafe_b64encode(orjson.dumps(sort_values)).decode().rstrip("=")


def _decode_cursor(cursor: str) -> list[Any]:
    import orjson

    try:
        place = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        place = None
    if not (isinstance(place, list) and len(place) == 2 and isinstance(place[0], (int, float))):
        raise InputError("the cursor is not one that was given with a result")
    return place
