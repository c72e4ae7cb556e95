"""SolrEdismaxSearcher: searches a Solr collection without our term fields, by the eDisMax handler of schema/solr."""

from __future__ import annotations

import re
import time
from typing import Any

from nutch2py.backends.servers.solr_client import SolrRejectedError
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError, QueryError
from nutch2py.records.document import clean_text
from nutch2py.search.engines.solr_searcher import document_fields, open_solr_client, query_error
from nutch2py.search.query.query_plan import DEFAULT_SEARCH_OPTIONS, SearchOptions
from nutch2py.search.results.collapse import COLLAPSE_BY_HOST, NO_SKETCHES_MESSAGE, collapse_hits, read_collapse_mode
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, FacetCounts, select_facets
from nutch2py.search.results.search_results import MAX_ROWS, MAX_START, Hit, SearchResult, first_value
from nutch2py.search.results.snippet import Snippet
from nutch2py.search.suggestions.suggester import MAX_TITLE_SUGGESTIONS, Suggestions

_HIGHLIGHT_START, _HIGHLIGHT_END = "\ue000", "\ue001"  # private-use characters, which pages rarely contain
_HIGHLIGHT = re.compile(f"{_HIGHLIGHT_START}([^{_HIGHLIGHT_START}{_HIGHLIGHT_END}]*){_HIGHLIGHT_END}")
_SNIPPET_LENGTH = 240
_FACETS = ("host", "type", "lang")  # facets of a Solr without our term fields
_QUERY_TOKEN = re.compile(r"[^\W\u2e80-\U0003ffff]+|\S")
_MAX_QUERY_TOKENS = 300
"""Limit of words, signs and Chinese characters in a query: Solr parses recursively, and about 800 exhaust its stack."""


class SolrEdismaxSearcher:
    """Searches a Solr without our term fields: the first collection of ``solr.server.url``, by ``solr.search.handler``.

    One thread at a time uses it: it has one connection.
    """

    def __init__(self, conf: Configuration) -> None:
        self.client = open_solr_client(conf)
        self.handler = conf.get_trimmed("solr.search.handler", "nutch").strip("/")
        self.collapse_mode = read_collapse_mode(conf)

    def search(
        self,
        query: str,
        start: int = 0,
        rows: int = 10,
        options: SearchOptions = DEFAULT_SEARCH_OPTIONS,
        *,
        cursor: str = "",
        with_facets: bool = False,
    ) -> SearchResult:
        """Run a query in Solr's language; the handler supports neither cursors nor sorting by date."""
        started = time.perf_counter()
        if cursor or options.newest_first or options.half_life_days:
            raise QueryError(
                "this Solr has no term fields, so no cursor, no sorting by date and no freshness: run index -reindex",
                "This index has no cursor, no sorting by date and no freshness.",
            )
        filters = options.facet_filters()
        if unknown := [name for name in filters if name not in _FACETS]:
            raise QueryError(
                f"this Solr has no term fields, so no filter {unknown[0]}: run index -reindex",
                f"This index has no filter {unknown[0]}.",
            )
        start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
        mode = self.collapse_mode if options.collapse_mode is None else options.collapse_mode
        facets: FacetCounts | None = None

        def find(start: int, rows: int, _: tuple[str, ...] = ()) -> tuple[int, list[Hit]]:
            nonlocal facets
            is_counted = with_facets and facets is None
            parameters = _hit_parameters(start, rows, is_counted) | filter_parameters(filters)
            response = self._query_handler(query, **parameters)
            if is_counted:
                facets = _read_facets(response)
            highlighting, found = response.get("highlighting", {}), response["response"]
            hits = [_make_hit(fields, highlighting.get(str(fields.get("id")), {})) for fields in found["docs"]]
            return int(found["numFound"]), hits

        collapsed_total, note = None, NO_SKETCHES_MESSAGE if mode else ""
        if mode == COLLAPSE_BY_HOST:
            total, hits, collapsed_total, note = collapse_hits(find, mode, start, rows)
        else:
            total, hits = find(start, rows)
        millis = (time.perf_counter() - started) * 1000
        counts = select_facets(facets or {}, filters)
        return SearchResult(query, start, total, hits, millis, collapsed_total, note, facets=counts)

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._query_handler("*:*", rows=0, **_OFF)["response"]["numFound"])

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        response = self._query_handler("*:*", rows=1, fq="{!term f=id v=$id}", id=document_id, **_OFF)
        documents = response["response"]["docs"]
        document: dict[str, Any] | None = documents[0] if documents else None
        return document

    def explain(self, query: str, document_id: str) -> str | None:
        """Return Solr's explanation."""
        response = self._query_handler(query, rows=1, fq="{!term f=id v=$id}", id=document_id, debug="results", **_OFF)
        explanation: str | None = response.get("debug", {}).get("explain", {}).get(document_id)
        return explanation

    def suggest(self, prefix: str) -> Suggestions:
        """Return titles of Solr's hits for the input."""
        hits = self.search(prefix, 0, MAX_TITLE_SUGGESTIONS).hits if prefix.strip() else []
        return Suggestions([], [(hit.title.text, hit.url) for hit in hits])

    def correct_query(self, query: str) -> str:
        """Return the correction of Solr's spell checker."""
        parameters = {**_OFF, "spellcheck": "true", "spellcheck.collate": "true"}
        response = self._query_handler(query, rows=0, **parameters)
        collations: list[Any] = response.get("spellcheck", {}).get("collations", [])
        return str(collations[1]) if len(collations) > 1 and isinstance(collations[1], str) else ""

    def _query_handler(self, query: str, **parameters: Any) -> dict[str, Any]:
        """Return Solr's response; raise IndexingError when Solr does not respond, InputError for an invalid query."""
        text = re.sub(f"[{_HIGHLIGHT_START}{_HIGHLIGHT_END}]", "", clean_text(query))
        if sum(1 for _ in _QUERY_TOKEN.finditer(text)) > _MAX_QUERY_TOKENS:
            raise InputError(f"the query has more than {_MAX_QUERY_TOKENS} words and signs: shorten it")
        try:
            return self.client.search(text, self.handler, **parameters)
        except SolrRejectedError as error:
            if error.status == 404:
                raise IndexingError(
                    f"Solr at {self.client.url} has no request handler {self.handler}: load the configset schema/solr "
                    "there, or correct solr.server.url or solr.search.handler"
                ) from error
            raise query_error(self.client, error) from error

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def filter_parameters(filters: dict[str, str]) -> dict[str, Any]:
    """Return Solr's parameters of filters. Values are parameters of their own, which no query parser reads.

    >>> filter_parameters({"lang": "zh"})
    {'fq': ['{!field f=lang v=$filter_lang}'], 'filter_lang': 'zh'}
    """
    if not filters:
        return {}
    queries = [f"{{!field f={name} v=$filter_{name}}}" for name in filters]
    return {"fq": queries, **{f"filter_{name}": clean_text(value) for name, value in filters.items()}}


_OFF = {"hl": "false", "facet": "false", "spellcheck": "false"}


def _hit_parameters(start: int, rows: int, with_facets: bool) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "start": start,
        "rows": rows,
        "fl": "*,pagerank:field(pagerank),score",
        "facet": "false",
        "spellcheck": "false",
        "hl.tag.pre": _HIGHLIGHT_START,
        "hl.tag.post": _HIGHLIGHT_END,
        "hl.encoder": "",
        "hl.snippets": 1,
        "hl.fragsize": _SNIPPET_LENGTH,
    }
    if with_facets:
        parameters |= {"facet": "true", "facet.field": list(_FACETS)}
        parameters |= {"facet.limit": MAX_COUNTED_VALUES, "facet.mincount": 1}
    return parameters


def _read_facets(response: dict[str, Any]) -> FacetCounts:
    counts: dict[str, list[Any]] = response.get("facet_counts", {}).get("facet_fields", {})
    return {name: [*zip(map(str, flat[::2]), flat[1::2], strict=False)] for name, flat in counts.items()}


def _make_hit(fields: dict[str, Any], highlighting: dict[str, list[str]]) -> Hit:
    score = float(fields.pop("score", 0.0))
    document_id = str(fields.get("id", ""))
    url = first_value(fields, "url") or document_id
    title = first_value(fields, "title") or url
    title_snippet = _parse_highlights(highlighting.get("title", []))
    if not title_snippet.highlights:
        title_snippet = Snippet(title[:500], ())
    content = _parse_highlights(highlighting.get("content", [])) if highlighting.get("content") else None
    return Hit(
        document_id,
        url,
        title_snippet,
        content or Snippet(first_value(fields, "content")[:_SNIPPET_LENGTH], ()),
        score,
        document_fields(fields),
    )


def _parse_highlights(fragments: list[str]) -> Snippet:
    r"""Return the text of highlighted fragments with the spans of the highlighted words.

    >>> _parse_highlights(["a \ue000word\ue001", "x"])
    Snippet(text='a word … x', highlights=((2, 6),))
    """
    text = " ".join(" … ".join(fragments).split())
    parts: list[str] = []
    highlights: list[tuple[int, int]] = []
    at = length = 0
    for match in _HIGHLIGHT.finditer(text):
        before = text[at : match.start()]
        length += len(before)
        highlights.append((length, length + len(match[1])))
        length += len(match[1])
        parts += [before, match[1]]
        at = match.end()
    plain = "".join([*parts, text[at:]]).replace(_HIGHLIGHT_START, "").replace(_HIGHLIGHT_END, "")
    return Snippet(plain, tuple(highlights))
