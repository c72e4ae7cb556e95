"""SolrEngine: plans in Solr's JSON."""

from __future__ import annotations

import re
from typing import Any

from nutch2py.backends.index_folder import NEAR, TERMS
from nutch2py.backends.solr_client import SolrClient, SolrRefusal, addresses, login
from nutch2py.conf import Configuration
from nutch2py.document import clean_text
from nutch2py.errors import IndexingError, InputError, NutchError
from nutch2py.indexer.search_fields import Weights
from nutch2py.search.freshness import Freshness
from nutch2py.search.plan import FILTER_SCORE, Best, Everything, Filter, Plan, Row
from nutch2py.search.results import Found, first_of
from nutch2py.search.server_searcher import LONGEST, PATIENCE, Answered, field_of

_ORDER = "score desc, id asc"
_NEWEST = f"{TERMS}date desc, id asc"
_FACTORS = frozenset({"boost", "pagerank"})  # fields that can be changed without sending documents again
_SPECIAL = re.compile(r'([\\"])')


class SolrEngine:
    """The collection of ``solr.server.url``; relevance is multiplied by ``index.weight.fields``, as they are now."""

    def __init__(self, conf: Configuration) -> None:
        self.client = connected(conf)
        powers = Weights(conf).powers
        factors = [f"pow(min(10000,max(0.0001,def({name},1))),{power})" for name, power in powers.items()]
        self._weight = (",".join(factors) or "1") if powers.keys() <= _FACTORS else f"def({TERMS}weight,1)"

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
        question: dict[str, Any] = {
            "query": self._weighted(plan, fresh),
            "limit": rows,
            "fields": "*,pagerank:field(pagerank),score",
            "sort": _NEWEST if newest else _ORDER,
        }
        if cursor:
            question["params"] = {"cursorMark": cursor}
        else:
            question["offset"] = start
        answer = self._ask(question)
        hits = []
        for fields in answer["response"]["docs"]:
            score = float(fields.pop("score", 0.0))
            hits.append(Found(0.0 if newest else score, visible(fields), first_of(fields, NEAR)))
        following = str(answer.get("nextCursorMark", "")) if len(hits) == rows else ""
        return Answered(int(answer["response"]["numFound"]), hits, "" if following == cursor else following)

    def values(self, plan: Plan, fields: tuple[str, ...], most: int) -> dict[str, list[tuple[str, int]]]:
        """Return values."""
        facets = {name: {"type": "terms", "field": name, "limit": most} for name in fields}
        found = self._ask({"query": query_of(plan), "limit": 0, "facet": facets}).get("facets", {})
        return {
            name: [(str(each["val"]), int(each["count"])) for each in found.get(name, {}).get("buckets", ())]
            for name in fields
        }

    def near(self, term: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents."""
        if not term.isalnum():
            return []
        asked = " ".join(f"{TERMS}{field}:{term}~{distance}" for field in ("title", "content"))
        answer = self._ask({"query": {"lucene": {"query": asked}}, "limit": most, "fields": "id,title,content,lang"})
        return [visible(fields) for fields in answer["response"]["docs"]]

    def beginning(self, start: str, most: int) -> list[dict[str, Any]]:
        """Return documents."""
        if not start.isalnum():
            return []
        asked = {"lucene": {"query": " ".join(f"{TERMS}{field}:{start}*" for field in ("title", "content"))}}
        question = {"query": self._boosted(asked), "limit": most, "fields": "id,title,content,lang", "sort": _ORDER}
        return [visible(fields) for fields in self._ask(question)["response"]["docs"]]

    def numbers(self, rows: list[Row]) -> list[int]:
        """Return how many documents have each row."""
        asked = {str(i): {"type": "query", "q": _matching(row)} for i, row in enumerate(rows)}
        found = self._ask({"query": {"lucene": {"query": "*:*"}}, "limit": 0, "facet": asked})["facets"]
        return [int(found[str(i)]["count"]) for i in range(len(rows))]

    def explain(self, plan: Plan, document_id: str, fresh: Freshness | None = None) -> str | None:
        """Return Solr's explanation."""
        only = query_of(Filter("id", document_id))
        asked = {"query": self._weighted(plan, fresh), "filter": [only], "limit": 1, "params": {"debug": "results"}}
        told: str | None = self._ask(asked).get("debug", {}).get("explain", {}).get(document_id)
        return told

    def close(self) -> None:
        """Give back the connections."""
        self.client.close()

    def _weighted(self, plan: Plan, fresh: Freshness | None = None) -> dict[str, Any]:
        return self._boosted(query_of(plan), _decay(fresh) if fresh else "1")

    def _boosted(self, query: dict[str, Any], factor: str = "1") -> dict[str, Any]:
        return {"boost": {"b": f"product({self._weight},{factor})", "query": query}}

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        params = {"wt": "json", "fl": "id", "df": "id", "echoParams": "none", **question.pop("params", {})}
        if "fields" in question:
            params.pop("fl")
        try:
            return self.client.ask("select", {**question, "params": params})
        except SolrRefusal as refusal:
            raise failure(self.client, refusal) from refusal


def connected(conf: Configuration) -> SolrClient:
    """Return what asks the first collection of ``solr.server.url``, while somebody waits."""
    kind, collection = conf.get_trimmed("solr.server.type", "http"), conf.get_trimmed("solr.collection")
    urls = addresses(conf, conf.get_trimmed("solr.server.url"), kind, collection)[0]
    timeout = min(conf.get_float("solr.timeout", 120.0), LONGEST)
    return SolrClient(urls, login(conf), timeout=timeout, patience=PATIENCE)


def failure(client: SolrClient, refusal: SolrRefusal) -> NutchError:
    """Return the error of a query that Solr refuses: InputError when the query is at fault, else IndexingError."""
    if refusal.status == 400:
        return InputError(f"Solr does not understand the query: {refusal}")
    return IndexingError(f"Solr at {client.url} does not answer the query: {refusal}")


def _decay(fresh: Freshness) -> str:
    age = f"abs(sub({fresh.now},def({TERMS}date,0)))"
    return f"sum({1 - fresh.share},product({fresh.share},pow(0.5,div({age},{fresh.half_life}))))"


def query_of(plan: Plan) -> dict[str, Any]:
    """Return a plan in Solr's JSON.

    >>> query_of(Filter("exact", "lang=en"))
    {'lucene': {'query': 'terms_exact:"lang=en"^=0.001'}}
    """
    if isinstance(plan, Filter):
        return {"lucene": {"query": f"{field_of(plan)}:{_quoted(plan.term)}^={FILTER_SCORE}"}}
    if isinstance(plan, Best):
        rows = (f"{_matching(row)}^{row.weight:.6g}" for row in plan.rows)
        return {"maxscore": {"query": " ".join(rows), "tie": plan.tie}}
    if isinstance(plan, Everything):
        return {"lucene": {"query": "*:*"}}
    made: dict[str, Any] = {}
    for name, parts in (("must", plan.must), ("should", plan.should), ("must_not", plan.must_not)):
        if parts:
            made[name] = [query_of(part) for part in parts]
    if plan.minimum:
        made["mm"] = plan.minimum
    return {"bool": made}


def _matching(row: Row) -> str:
    return f"{field_of(row)}:{_quoted(' '.join(row.terms))}"


def visible(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what was sent to Solr: without what it keeps for itself, and one value of a list alone."""
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in fields.items()
        if not name.startswith(("_", TERMS))
    }


def _quoted(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", clean_text(text)) + '"'
