"""ElasticSearcher: runs query plans on OpenSearch and Elasticsearch."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.encoders.encoder_selection import require_no_encoder
from nutch2py.backends.index_fields import SKETCH_FIELD, TERMS_PREFIX
from nutch2py.backends.servers.elastic_client import TOO_MANY_CLAUSES
from nutch2py.backends.servers.server_retry import RequestRejectedError
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, QueryError
from nutch2py.indexer.writers.elastic_writer import ElasticIndexWriter, elastic_document_id
from nutch2py.search.engines.explanation_tree import format_tree
from nutch2py.search.engines.plan_searcher import EngineResult, HitRequest
from nutch2py.search.engines.server_searcher import (
    LUCENE_SCALE,
    MAX_RESPONSE_SECONDS,
    MAX_RETRY_SECONDS,
    QUERY_REJECTED_MESSAGE,
    QUERY_TOO_LONG_MESSAGE,
    ServerSearcher,
    server_field,
)
from nutch2py.search.query.freshness import Freshness
from nutch2py.search.query.query_plan import (
    FILTER_SCORE,
    ConstantClause,
    DisMaxClause,
    FilterClause,
    MatchAllClause,
    PhraseClause,
    PrefixClause,
    QueryPlan,
)
from nutch2py.search.query.search_cursor import invalid_cursor
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, server_facet_field
from nutch2py.search.results.search_results import ScoredDocument

_MAX_RESULT_WINDOW = 10_000
"""``index.max_result_window``: later hits need a cursor."""
_SAMPLE_FIELDS = ["id", "title", "content", "lang"]  # of pages with the original spelling of terms
_SCORE_SORT: list[dict[str, str]] = [{"_score": "desc"}, {"id": "asc"}]
_DATE_FIELD = f"{TERMS_PREFIX}date"
_DATE_SORT: list[dict[str, str]] = [{_DATE_FIELD: "desc"}, {"id": "asc"}]


class ElasticSearcher(ServerSearcher):
    """The index ``elastic.index`` at ``elastic.host``; relevance is multiplied by the weight that was sent."""

    def __init__(self, conf: Configuration) -> None:
        require_no_encoder(conf, "OpenSearch")
        settings = ElasticIndexWriter(conf)
        self._weight_line = f"{TERMS_PREFIX}weight: {DocumentWeights(conf)}, as of indexing"
        self.client = settings.create_client(min(settings.timeout, MAX_RESPONSE_SECONDS), MAX_RETRY_SECONDS)
        super().__init__(conf, self.client)

    def _find(self, request: HitRequest) -> EngineResult:
        rows = request.rows
        if not request.cursor and request.start + rows > _MAX_RESULT_WINDOW:
            if request.start >= _MAX_RESULT_WINDOW:
                found = self._find(request._replace(start=0, rows=0))
                if found.total > request.start:
                    reason = f"results after the first {_MAX_RESULT_WINDOW:,}"
                    raise QueryError(f"{reason} of {self.url} require a cursor", f"{reason} require a cursor")
                return found
            rows = _MAX_RESULT_WINDOW - request.start
        body: dict[str, Any] = {
            "query": _ranked_query(request.plan, request.freshness),
            "size": rows,
            "sort": _DATE_SORT if request.newest_first else _SCORE_SORT,
            "track_total_hits": True,
            "docvalue_fields": [SKETCH_FIELD],
        }
        if request.facets:
            body["aggs"] = {
                name: {"terms": {"field": server_facet_field(name), "size": MAX_COUNTED_VALUES}}
                for name in request.facets
            }
        if request.cursor and request.cursor != "*":
            body["search_after"] = _decode_cursor(request.cursor)
        elif not request.cursor:
            body["from"] = request.start
        response = self._post("/_search", body)
        found_hits = response["hits"]["hits"]
        hits = [
            ScoredDocument(
                0.0 if request.newest_first else float(hit["_score"] or 0.0),
                hit["_source"],
                *hit.get("fields", {}).get(SKETCH_FIELD, ())[:1],
            )
            for hit in found_hits
        ]
        next_cursor = _encode_cursor(found_hits[-1]["sort"]) if hits and len(hits) == rows else ""
        counted = response.get("aggregations", {})
        facets = {
            name: [(str(each["key"]), int(each["doc_count"])) for each in counted.get(name, {}).get("buckets", ())]
            for name in request.facets
        }
        return EngineResult(int(response["hits"]["total"]["value"]), hits, next_cursor, facets)

    def _similar_documents(self, term: str, distance: int, limit: int) -> list[dict[str, Any]]:
        fuzzy = [
            {"fuzzy": {f"{TERMS_PREFIX}{field}": {"value": term, "fuzziness": distance}}}
            for field in ("title", "content")
        ]
        request = {"query": {"bool": {"should": fuzzy}}, "size": limit, "_source": _SAMPLE_FIELDS}
        return [hit["_source"] for hit in self._post("/_search", request)["hits"]["hits"]]

    def _prefix_documents(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        prefixes = [{"prefix": {f"{TERMS_PREFIX}{field}": {"value": prefix}}} for field in ("title", "content")]
        request = {
            "query": _multiply_by_weight({"bool": {"should": prefixes}}),
            "size": limit,
            "sort": _SCORE_SORT,
            "_source": _SAMPLE_FIELDS,
        }
        return [hit["_source"] for hit in self._post("/_search", request)["hits"]["hits"]]

    def _count_phrases(self, phrases: list[PhraseClause]) -> list[int]:
        filters = {str(i): _phrase_query(phrase) for i, phrase in enumerate(phrases)}
        request = {"size": 0, "aggs": {"rows": {"filters": {"filters": filters}}}}
        buckets = self._post("/_search", request)["aggregations"]["rows"]["buckets"]
        return [int(buckets[str(i)]["doc_count"]) for i in range(len(phrases))]

    def _count_documents_with_field(self, field: str) -> int:
        request = {"query": {"exists": {"field": f"{TERMS_PREFIX}{field}"}}, "size": 0, "track_total_hits": True}
        return int(self._post("/_search", request)["hits"]["total"]["value"])

    def _explain_plan(self, plan: QueryPlan, document_id: str, freshness: Freshness | None) -> str | None:
        request = {"query": _ranked_query(plan, freshness)}
        try:
            response = self.client.post_json(f"/_explain/{quote(elastic_document_id(document_id), safe='')}", request)
        except RequestRejectedError as error:
            if error.status == 404:
                return None
            raise self._to_error(error) from error
        if not response.get("matched"):
            return None
        return "\n".join([self._weight_line, *format_tree(response["explanation"])])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.client.post_json(path, body)
        except RequestRejectedError as error:
            raise self._to_error(error) from error

    def _to_error(self, rejection: RequestRejectedError) -> Exception:
        if not TOO_MANY_CLAUSES.isdisjoint(rejection.error_types):
            return QueryError(f"the search server rejects the query as too long: {rejection}", QUERY_TOO_LONG_MESSAGE)
        if rejection.status == 404:
            return IndexingError(f"no index found at {self.url}: run index first, or correct elastic.index")
        if rejection.status == 400:
            return QueryError(f"the search server does not understand the query: {rejection}", QUERY_REJECTED_MESSAGE)
        return IndexingError(f"the index {self.url} does not respond: {rejection} (HTTP {rejection.status})")


def _ranked_query(plan: QueryPlan, freshness: Freshness | None = None) -> dict[str, Any]:
    query = _multiply_by_weight(to_elastic_query(plan))
    if freshness is None:
        return query
    decay = {_DATE_FIELD: {"origin": freshness.now, "scale": freshness.half_life, "decay": 0.5}}
    has_date = {"exists": {"field": _DATE_FIELD}}  # without a date the decay would be 1
    functions = [{"weight": 1 - freshness.share}, {"filter": has_date, "exp": decay, "weight": freshness.share}]
    sum_of_functions = {"query": query, "functions": functions, "score_mode": "sum", "boost_mode": "multiply"}
    return {"function_score": sum_of_functions}


def _multiply_by_weight(query: dict[str, Any]) -> dict[str, Any]:
    factor = {"field": f"{TERMS_PREFIX}weight", "missing": 1}
    return {"function_score": {"query": query, "field_value_factor": factor, "boost_mode": "multiply"}}


def to_elastic_query(plan: QueryPlan) -> dict[str, Any]:
    """Return a plan in the server's JSON.

    >>> to_elastic_query(FilterClause("exact", "lang=en"))
    {'constant_score': {'filter': {'term': {'terms_exact': 'lang=en'}}, 'boost': 0.001}}
    """
    if isinstance(plan, FilterClause):
        return {"constant_score": {"filter": {"term": {server_field(plan): plan.term}}, "boost": FILTER_SCORE}}
    if isinstance(plan, DisMaxClause):
        return {
            "dis_max": {"queries": [_phrase_query(phrase) for phrase in plan.clauses], "tie_breaker": plan.tie_breaker}
        }
    if isinstance(plan, ConstantClause):
        phrases = [_phrase_query(phrase) for phrase in plan.clause.clauses]
        return {"constant_score": {"filter": {"bool": {"should": phrases}}, "boost": plan.score * LUCENE_SCALE}}
    if isinstance(plan, MatchAllClause):
        return {"match_all": {}}
    clauses: dict[str, Any] = {}
    for name, parts in (("must", plan.must), ("should", plan.should), ("must_not", plan.must_not)):
        if parts:
            clauses[name] = [to_elastic_query(part) for part in parts]
    clauses["minimum_should_match"] = plan.minimum_match
    return {"bool": clauses}


def _phrase_query(phrase: PhraseClause | PrefixClause) -> dict[str, Any]:
    if isinstance(phrase, PrefixClause):
        return {"prefix": {server_field(phrase): {"value": phrase.prefix, "boost": phrase.weight * LUCENE_SCALE}}}
    if len(phrase.terms) == 1:
        return {"term": {server_field(phrase): {"value": phrase.terms[0], "boost": phrase.weight}}}
    return {"match_phrase": {server_field(phrase): {"query": " ".join(phrase.terms), "boost": phrase.weight}}}


def _encode_cursor(sort_values: list[Any]) -> str:
    import orjson

    return base64.urlsafe_b64encode(orjson.dumps(sort_values)).decode().rstrip("=")


def _decode_cursor(cursor: str) -> list[Any]:
    import orjson

    try:
        sort_values = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        sort_values = None
    if not (
        isinstance(sort_values, list)
        and [type(value) for value in sort_values[1:]] == [str]
        and type(sort_values[0]) in (int, float)
    ):
        raise invalid_cursor()
    return sort_values
