"""SolrEngine: plans in Solr's JSON."""

from __future__ import annotations

import re
from typing import Any

from nutch2py.backends.embedded_index.index_directory import SKETCH_FIELD, TERMS_PREFIX
from nutch2py.backends.servers.solr_client import (
    SolrClient,
    SolrRejectedError,
    resolve_solr_addresses,
    solr_credentials,
)
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError, NutchError
from nutch2py.indexer.search_fields import DocumentWeights
from nutch2py.records.document import clean_text
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
from nutch2py.search.results.search_results import ScoredDocument, first_value

_SCORE_SORT = "score desc, id asc"
_DATE_SORT = f"{TERMS_PREFIX}date desc, id asc"
_UPDATABLE_FIELDS = frozenset({"boost", "pagerank"})  # fields that can be changed without sending documents again
_SPECIAL_CHARACTERS = re.compile(r'([\\"])')


class SolrEngine:
    """The collection of ``solr.server.url``; relevance is multiplied by ``index.weight.fields``, as they are now."""

    def __init__(self, conf: Configuration) -> None:
        self.client = open_solr_client(conf)
        powers = DocumentWeights(conf).powers
        factors = [f"pow(min(10000,max(0.0001,def({name},1))),{power})" for name, power in powers.items()]
        self._weight_function = (
            (",".join(factors) or "1") if powers.keys() <= _UPDATABLE_FIELDS else f"def({TERMS_PREFIX}weight,1)"
        )

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
        question: dict[str, Any] = {
            "query": self._ranked_query(plan, freshness),
            "limit": rows,
            "fields": "*,pagerank:field(pagerank),score",
            "sort": _DATE_SORT if newest_first else _SCORE_SORT,
        }
        if cursor:
            question["params"] = {"cursorMark": cursor}
        else:
            question["offset"] = start
        answer = self._select(question)
        hits = []
        for fields in answer["response"]["docs"]:
            score = float(fields.pop("score", 0.0))
            hits.append(
                ScoredDocument(
                    0.0 if newest_first else score, document_fields(fields), first_value(fields, SKETCH_FIELD)
                )
            )
        following = str(answer.get("nextCursorMark", "")) if len(hits) == rows else ""
        return EngineResult(int(answer["response"]["numFound"]), hits, "" if following == cursor else following)

    def count_values(self, plan: QueryPlan, fields: tuple[str, ...], limit: int) -> dict[str, list[tuple[str, int]]]:
        """Return values."""
        facets = {name: {"type": "terms", "field": name, "limit": limit} for name in fields}
        found = self._select({"query": to_solr_query(plan), "limit": 0, "facet": facets}).get("facets", {})
        return {
            name: [(str(each["val"]), int(each["count"])) for each in found.get(name, {}).get("buckets", ())]
            for name in fields
        }

    def fuzzy_documents(self, term: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents."""
        if not term.isalnum():
            return []
        asked = " ".join(f"{TERMS_PREFIX}{field}:{term}~{distance}" for field in ("title", "content"))
        answer = self._select(
            {"query": {"lucene": {"query": asked}}, "limit": limit, "fields": "id,title,content,lang"}
        )
        return [document_fields(fields) for fields in answer["response"]["docs"]]

    def prefix_documents(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        """Return documents."""
        if not prefix.isalnum():
            return []
        asked = {"lucene": {"query": " ".join(f"{TERMS_PREFIX}{field}:{prefix}*" for field in ("title", "content"))}}
        question = {
            "query": self._multiply_by_weight(asked),
            "limit": limit,
            "fields": "id,title,content,lang",
            "sort": _SCORE_SORT,
        }
        return [document_fields(fields) for fields in self._select(question)["response"]["docs"]]

    def count_phrases(self, phrases: list[PhraseClause]) -> list[int]:
        """Return how many documents have each row."""
        asked = {str(i): {"type": "query", "q": _phrase_query(row)} for i, row in enumerate(phrases)}
        found = self._select({"query": {"lucene": {"query": "*:*"}}, "limit": 0, "facet": asked})["facets"]
        return [int(found[str(i)]["count"]) for i in range(len(phrases))]

    def explain(self, plan: QueryPlan, document_id: str, freshness: Freshness | None = None) -> str | None:
        """Return Solr's explanation."""
        only = to_solr_query(FilterClause("id", document_id))
        asked = {
            "query": self._ranked_query(plan, freshness),
            "filter": [only],
            "limit": 1,
            "params": {"debug": "results"},
        }
        told: str | None = self._select(asked).get("debug", {}).get("explain", {}).get(document_id)
        return told

    def close(self) -> None:
        """Give back the connections."""
        self.client.close()

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
        except SolrRejectedError as refusal:
            raise query_error(self.client, refusal) from refusal


def open_solr_client(conf: Configuration) -> SolrClient:
    """Return what asks the first collection of ``solr.server.url``, while somebody waits."""
    kind, collection = conf.get_trimmed("solr.server.type", "http"), conf.get_trimmed("solr.collection")
    urls = resolve_solr_addresses(conf, conf.get_trimmed("solr.server.url"), kind, collection)[0]
    timeout = min(conf.get_float("solr.timeout", 120.0), MAX_RESPONSE_SECONDS)
    return SolrClient(urls, solr_credentials(conf), timeout=timeout, max_retry_seconds=MAX_RETRY_SECONDS)


def query_error(client: SolrClient, rejection: SolrRejectedError) -> NutchError:
    """Return the error of a query that Solr refuses: InputError when the query is at fault, else IndexingError."""
    if rejection.status == 400:
        return InputError(f"Solr does not understand the query: {rejection}")
    return IndexingError(f"Solr at {client.url} does not answer the query: {rejection}")


def _freshness_function(freshness: Freshness) -> str:
    age = f"abs(sub({freshness.now},def({TERMS_PREFIX}date,0)))"
    return f"sum({1 - freshness.share},product({freshness.share},pow(0.5,div({age},{freshness.half_life}))))"


def to_solr_query(plan: QueryPlan) -> dict[str, Any]:
    """Return a plan in Solr's JSON.

    >>> query_of(Filter("exact", "lang=en"))
    {'lucene': {'query': 'terms_exact:"lang=en"^=0.001'}}
    """
    if isinstance(plan, FilterClause):
        return {"lucene": {"query": f"{server_field(plan)}:{_quote(plan.term)}^={FILTER_SCORE}"}}
    if isinstance(plan, DisMaxClause):
        rows = (f"{_phrase_query(row)}^{row.weight:.6g}" for row in plan.clauses)
        return {"maxscore": {"query": " ".join(rows), "tie": plan.tie_breaker}}
    if isinstance(plan, MatchAllClause):
        return {"lucene": {"query": "*:*"}}
    made: dict[str, Any] = {}
    for name, parts in (("must", plan.must), ("should", plan.should), ("must_not", plan.must_not)):
        if parts:
            made[name] = [to_solr_query(part) for part in parts]
    if plan.minimum_match:
        made["mm"] = plan.minimum_match
    return {"bool": made}


def _phrase_query(row: PhraseClause) -> str:
    return f"{server_field(row)}:{_quote(' '.join(row.terms))}"


def document_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what was sent to Solr: without what it keeps for itself, and one value of a list alone."""
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in fields.items()
        if not name.startswith(("_", TERMS_PREFIX))
    }


def _quote(text: str) -> str:
    return '"' + _SPECIAL_CHARACTERS.sub(r"\\\1", clean_text(text)) + '"'
