"""ElasticEngine: plans in the JSON of OpenSearch and Elasticsearch."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote

from nutch2py.backends.attempts import Refusal
from nutch2py.backends.index_folder import NEAR, TERMS
from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.indexer.search_fields import Weights
from nutch2py.indexer.writers.elastic_writer import ElasticIndexWriter, index_id
from nutch2py.search.explained import tree_lines
from nutch2py.search.freshness import Freshness
from nutch2py.search.plan import FILTER_SCORE, Best, Everything, Filter, Plan, Row
from nutch2py.search.results import Found
from nutch2py.search.server_searcher import LONGEST, PATIENCE, Answered, field_of

_WINDOW = 10_000
"""``index.max_result_window``: hits behind are reached by a cursor only."""
_READ = ["id", "title", "content", "lang"]  # of pages that tell how words are written
_ORDER: list[dict[str, str]] = [{"_score": "desc"}, {"id": "asc"}]
_DATE = f"{TERMS}date"
_NEWEST: list[dict[str, str]] = [{_DATE: "desc"}, {"id": "asc"}]


class ElasticEngine:
    """The index ``elastic.index`` at ``elastic.host``; relevance is multiplied by the weight as it was sent."""

    def __init__(self, conf: Configuration) -> None:
        settings = ElasticIndexWriter(conf)
        self._factors = f"{TERMS}weight: {Weights(conf)}, as the page was sent"
        self.client = settings.connect(min(settings.timeout, LONGEST), PATIENCE)

    @property
    def url(self) -> str:
        """The address."""
        return self.client.url

    def find(
        self,
        plan: Plan,
        start: int,
        rows: int,
        newest: bool = False,
        cursor: str = "",
        fresh: Freshness | None = None,
    ) -> Answered:
        """Return hits."""
        if not cursor and start + rows > _WINDOW:
            if start >= _WINDOW:
                total = self.find(plan, 0, 0).total
                if total > start:
                    raise InputError(f"results behind the first {_WINDOW:,} of {self.url} are reached by a cursor only")
                return Answered(total, [], "")
            rows = _WINDOW - start
        question: dict[str, Any] = {
            "query": _weighted(plan, fresh),
            "size": rows,
            "sort": _NEWEST if newest else _ORDER,
            "track_total_hits": True,
            "docvalue_fields": [NEAR],
        }
        if cursor and cursor != "*":
            question["search_after"] = _after(cursor)
        elif not cursor:
            question["from"] = start
        found = self._ask("/_search", question)["hits"]
        hits = [
            Found(
                0.0 if newest else float(hit["_score"] or 0.0), hit["_source"], *hit.get("fields", {}).get(NEAR, ())[:1]
            )
            for hit in found["hits"]
        ]
        following = _cursor(found["hits"][-1]["sort"]) if hits and len(hits) == rows else ""
        return Answered(int(found["total"]["value"]), hits, following)

    def values(self, plan: Plan, fields: tuple[str, ...], most: int) -> dict[str, list[tuple[str, int]]]:
        """Return values."""
        asked = {name: {"terms": {"field": name, "size": most}} for name in fields}
        found = self._ask("/_search", {"query": query_of(plan), "size": 0, "aggs": asked}).get("aggregations", {})
        return {
            name: [(str(each["key"]), int(each["doc_count"])) for each in found.get(name, {}).get("buckets", ())]
            for name in fields
        }

    def near(self, term: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents."""
        fuzzy = [
            {"fuzzy": {f"{TERMS}{field}": {"value": term, "fuzziness": distance}}} for field in ("title", "content")
        ]
        question = {"query": {"bool": {"should": fuzzy}}, "size": most, "_source": _READ}
        return [hit["_source"] for hit in self._ask("/_search", question)["hits"]["hits"]]

    def beginning(self, start: str, most: int) -> list[dict[str, Any]]:
        """Return documents."""
        begun = [{"prefix": {f"{TERMS}{field}": {"value": start}}} for field in ("title", "content")]
        question = {
            "query": _boosted({"bool": {"should": begun}}),
            "size": most,
            "sort": _ORDER,
            "_source": _READ,
        }
        return [hit["_source"] for hit in self._ask("/_search", question)["hits"]["hits"]]

    def numbers(self, rows: list[Row]) -> list[int]:
        """Return how many documents have each row."""
        asked = {str(i): _matching(row) for i, row in enumerate(rows)}
        question = {"size": 0, "aggs": {"rows": {"filters": {"filters": asked}}}}
        found = self._ask("/_search", question)["aggregations"]["rows"]["buckets"]
        return [int(found[str(i)]["doc_count"]) for i in range(len(rows))]

    def explain(self, plan: Plan, document_id: str, fresh: Freshness | None = None) -> str | None:
        """Return the server's explanation."""
        question = {"query": _weighted(plan, fresh)}
        try:
            told = self.client.ask(f"/_explain/{quote(index_id(document_id), safe='')}", question)
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise self._failure(refusal) from refusal
        return "\n".join([self._factors, *tree_lines(told["explanation"])]) if told.get("matched") else None

    def close(self) -> None:
        """Give back the connections."""
        self.client.close()

    def _ask(self, path: str, question: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.client.ask(path, question)
        except Refusal as refusal:
            raise self._failure(refusal) from refusal

    def _failure(self, refusal: Refusal) -> Exception:
        if refusal.status == 404:
            return IndexingError(f"there is no index {self.url}: run index first, or correct elastic.index")
        if refusal.status == 400:
            return InputError(f"the search server does not understand the query: {refusal}")
        return IndexingError(f"the index {self.url} does not answer: {refusal} (HTTP {refusal.status})")


def _weighted(plan: Plan, fresh: Freshness | None = None) -> dict[str, Any]:
    query = _boosted(query_of(plan))
    if fresh is None:
        return query
    decay = {_DATE: {"origin": fresh.now, "scale": fresh.half_life, "decay": 0.5}}
    dated = {"exists": {"field": _DATE}}  # without a date the decay would be 1
    functions = [{"weight": 1 - fresh.share}, {"filter": dated, "exp": decay, "weight": fresh.share}]
    summed = {"query": query, "functions": functions, "score_mode": "sum", "boost_mode": "multiply"}
    return {"function_score": summed}


def _boosted(query: dict[str, Any]) -> dict[str, Any]:
    factor = {"field": f"{TERMS}weight", "missing": 1}
    return {"function_score": {"query": query, "field_value_factor": factor, "boost_mode": "multiply"}}


def query_of(plan: Plan) -> dict[str, Any]:
    """Return a plan in the server's JSON.

    >>> query_of(Filter("exact", "lang=en"))
    {'constant_score': {'filter': {'term': {'terms_exact': 'lang=en'}}, 'boost': 0.001}}
    """
    if isinstance(plan, Filter):
        return {"constant_score": {"filter": {"term": {field_of(plan): plan.term}}, "boost": FILTER_SCORE}}
    if isinstance(plan, Best):
        return {"dis_max": {"queries": [_matching(row) for row in plan.rows], "tie_breaker": plan.tie}}
    if isinstance(plan, Everything):
        return {"match_all": {}}
    made: dict[str, Any] = {}
    for name, parts in (("must", plan.must), ("should", plan.should), ("must_not", plan.must_not)):
        if parts:
            made[name] = [query_of(part) for part in parts]
    made["minimum_should_match"] = plan.minimum
    return {"bool": made}


def _matching(row: Row) -> dict[str, Any]:
    if len(row.terms) == 1:
        return {"term": {field_of(row): {"value": row.terms[0], "boost": row.weight}}}
    return {"match_phrase": {field_of(row): {"query": " ".join(row.terms), "boost": row.weight}}}


def _cursor(place: list[Any]) -> str:
    import orjson

    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def _after(cursor: str) -> list[Any]:
    import orjson

    try:
        place = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        place = None
    if not (isinstance(place, list) and len(place) == 2 and isinstance(place[0], (int, float))):
        raise InputError("the cursor is not one that was given with a result")
    return place
