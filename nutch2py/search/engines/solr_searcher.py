"""SolrSearcher: runs query plans on Solr."""

from __future__ import annotations

import re
from typing import Any

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.encoders.encoder_selection import require_no_encoder
from nutch2py.backends.index_fields import SKETCH_FIELD, TERMS_PREFIX
from nutch2py.backends.servers.server_retry import max_response_bytes
from nutch2py.backends.servers.solr_client import (
    TOO_MANY_CLAUSES,
    SolrClient,
    SolrRejectedError,
    resolve_solr_addresses,
    solr_credentials,
)
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, NutchError, QueryError
from nutch2py.records.document import clean_text
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
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, server_facet_field
from nutch2py.search.results.search_results import ScoredDocument, first_value

_SCORE_SORT = "score desc, id asc"
_DATE_SORT = f"{TERMS_PREFIX}date desc, id asc"
_UPDATABLE_FIELDS = frozenset({"boost", "pagerank"})  # fields updated without re-indexing documents
_PREFIX_SPECIAL_CHARACTERS = re.compile(r"(\W)")
_ESCAPED = r"\\\1"
_SPECIAL_CHARACTERS = re.compile(r'([\\"])')


class SolrSearcher(ServerSearcher):
    """The collection of ``solr.server.url``; relevance is multiplied by the current ``index.weight.fields``."""

    def __init__(self, conf: Configuration) -> None:
        require_no_encoder(conf, "Solr")
        self.client = open_solr_client(conf)
        super().__init__(conf, self.client)
        powers = DocumentWeights(conf).powers
        factors = [f"pow(min(10000,max(0.0001,def({name},1))),{power})" for name, power in powers.items()]
        self._weight_function = (
            (",".join(factors) or "1") if powers.keys() <= _UPDATABLE_FIELDS else f"def({TERMS_PREFIX}weight,1)"
        )

    def _find(self, request: HitRequest) -> EngineResult:
        body: dict[str, Any] = {
            "query": self._ranked_query(request.plan, request.freshness),
            "limit": request.rows,
            "fields": "*,pagerank:field(pagerank),score",
            "sort": _DATE_SORT if request.newest_first else _SCORE_SORT,
            "facet": {
                name: {"type": "terms", "field": server_facet_field(name), "limit": MAX_COUNTED_VALUES}
                for name in request.facets
            },
        }
        if request.cursor:
            body["params"] = {"cursorMark": request.cursor}
        else:
            body["offset"] = request.start
        response = self._select(body)
        hits = []
        for fields in response["response"]["docs"]:
            score = 0.0 if request.newest_first else float(fields.get("score", 0.0))
            sketch = first_value(fields, SKETCH_FIELD)
            fields.pop("score", None)
            hits.append(ScoredDocument(score, document_fields(fields), sketch))
        next_cursor = str(response.get("nextCursorMark", "")) if len(hits) == request.rows else ""
        counted = response.get("facets", {})
        facets = {
            name: [(str(each["val"]), int(each["count"])) for each in counted.get(name, {}).get("buckets", ())]
            for name in request.facets
        }
        total = int(response["response"]["numFound"])
        return EngineResult(total, hits, "" if next_cursor == request.cursor else next_cursor, facets)

    def _similar_documents(self, term: str, distance: int, limit: int) -> list[dict[str, Any]]:
        if not term.isalnum():
            return []
        query = " ".join(f"{TERMS_PREFIX}{field}:{term}~{distance}" for field in ("title", "content"))
        response = self._select(
            {"query": {"lucene": {"query": query}}, "limit": limit, "fields": "id,title,content,lang"}
        )
        return [document_fields(fields) for fields in response["response"]["docs"]]

    def _prefix_documents(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        if not prefix.isalnum():
            return []
        query = {"lucene": {"query": " ".join(f"{TERMS_PREFIX}{field}:{prefix}*" for field in ("title", "content"))}}
        request = {
            "query": self._multiply_by_weight(query),
            "limit": limit,
            "fields": "id,title,content,lang",
            "sort": _SCORE_SORT,
        }
        return [document_fields(fields) for fields in self._select(request)["response"]["docs"]]

    def _count_phrases(self, phrases: list[PhraseClause]) -> list[int]:
        facets = {str(i): {"type": "query", "q": _phrase_query(phrase)} for i, phrase in enumerate(phrases)}
        counts = self._select({"query": {"lucene": {"query": "*:*"}}, "limit": 0, "facet": facets})["facets"]
        if not counts["count"]:  # Solr leaves out the facets of an empty index
            return [0] * len(phrases)
        return [int(counts[str(i)]["count"]) for i in range(len(phrases))]

    def _count_documents_with_field(self, field: str) -> int:
        request = {"query": {"lucene": {"query": f"{TERMS_PREFIX}{field}:*"}}, "limit": 0}
        return int(self._select(request)["response"]["numFound"])

    def _explain_plan(self, plan: QueryPlan, document_id: str, freshness: Freshness | None) -> str | None:
        document_filter = to_solr_query(FilterClause("id", document_id))
        request = {
            "query": self._ranked_query(plan, freshness),
            "filter": [document_filter],
            "limit": 1,
            "params": {"debug": "results"},
        }
        explanation: str | None = self._select(request).get("debug", {}).get("explain", {}).get(document_id)
        return explanation

    def _ranked_query(self, plan: QueryPlan, freshness: Freshness | None = None) -> dict[str, Any]:
        return self._multiply_by_weight(to_solr_query(plan), _freshness_function(freshness) if freshness else "1")

    def _multiply_by_weight(self, query: dict[str, Any], factor: str = "1") -> dict[str, Any]:
        return {"boost": {"b": f"product({self._weight_function},{factor})", "query": query}}

    def _select(self, body: dict[str, Any]) -> dict[str, Any]:
        params = {"wt": "json", "fl": "id", "df": "id", "echoParams": "none", **body.pop("params", {})}
        if "fields" in body:
            params.pop("fl")
        try:
            return self.client.post_json("select", {**body, "params": params})
        except SolrRejectedError as error:
            raise query_error(self.client, error) from error


def open_solr_client(conf: Configuration) -> SolrClient:
    """Return a client for queries to the first collection of ``solr.server.url``, with the timeouts of a search."""
    kind, collection = conf.get_trimmed("solr.server.type", "http"), conf.get_trimmed("solr.collection")
    urls = resolve_solr_addresses(conf, conf.get_trimmed("solr.server.url"), kind, collection)[0]
    timeout = min(conf.get_float("solr.timeout", 120.0), MAX_RESPONSE_SECONDS)
    return SolrClient(
        urls,
        solr_credentials(conf),
        timeout=timeout,
        max_retry_seconds=MAX_RETRY_SECONDS,
        max_response_bytes=max_response_bytes(conf),
    )


def query_error(client: SolrClient, rejection: SolrRejectedError) -> NutchError:
    """Return the error of a rejected query: QueryError when the query is the cause, else IndexingError."""
    if not TOO_MANY_CLAUSES.isdisjoint(rejection.error_types):
        return QueryError(f"Solr at {client.url} rejects the query as too long: {rejection}", QUERY_TOO_LONG_MESSAGE)
    if rejection.status == 400:
        return QueryError(f"Solr does not understand the query: {rejection}", QUERY_REJECTED_MESSAGE)
    return IndexingError(f"Solr at {client.url} cannot run the query: {rejection}")


def _freshness_function(freshness: Freshness) -> str:
    age = f"abs(sub({freshness.now},def({TERMS_PREFIX}date,0)))"
    return f"sum({1 - freshness.share},product({freshness.share},pow(0.5,div({age},{freshness.half_life}))))"


def to_solr_query(plan: QueryPlan) -> dict[str, Any]:
    """Return a plan in Solr's JSON.

    >>> to_solr_query(FilterClause("exact", "lang=en"))
    {'lucene': {'query': 'terms_exact:"lang=en"^=0.001'}}
    """
    if isinstance(plan, FilterClause):
        return {"lucene": {"query": f"{server_field(plan)}:{_quote(plan.term)}^={FILTER_SCORE}"}}
    if isinstance(plan, DisMaxClause):
        phrases = (f"{_phrase_query(phrase)}{_boost_of(phrase)}" for phrase in plan.clauses)
        return {"maxscore": {"query": " ".join(phrases), "tie": plan.tie_breaker}}
    if isinstance(plan, ConstantClause):
        phrases = (_phrase_query(phrase) for phrase in plan.clause.clauses)
        return {"lucene": {"query": f"({' '.join(phrases)})^={plan.score * LUCENE_SCALE:.6g}"}}
    if isinstance(plan, MatchAllClause):
        return {"lucene": {"query": "*:*"}}
    clauses: dict[str, Any] = {}
    for name, parts in (("must", plan.must), ("should", plan.should), ("must_not", plan.must_not)):
        if parts:
            clauses[name] = [to_solr_query(part) for part in parts]
    if plan.minimum_match:
        clauses["mm"] = plan.minimum_match
    return {"bool": clauses}


def _boost_of(clause: PhraseClause | PrefixClause) -> str:
    if isinstance(clause, PrefixClause):
        return f"^={clause.weight * LUCENE_SCALE:.6g}"
    return f"^{clause.weight:.6g}"


def _phrase_query(phrase: PhraseClause | PrefixClause) -> str:
    if isinstance(phrase, PrefixClause):
        return f"{server_field(phrase)}:{_PREFIX_SPECIAL_CHARACTERS.sub(_ESCAPED, phrase.prefix)}*"
    return f"{server_field(phrase)}:{_quote(' '.join(phrase.terms))}"


def document_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were sent to Solr, without internal ones, and with single values unwrapped."""
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in fields.items()
        if not name.startswith(("_", TERMS_PREFIX))
    }


def _quote(text: str) -> str:
    return '"' + _SPECIAL_CHARACTERS.sub(r"\\\1", clean_text(text)) + '"'
