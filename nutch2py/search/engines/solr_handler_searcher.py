"""SolrHandlerSearcher: searches a Solr collection without our term fields, by a handler of schema/solr."""

from __future__ import annotations

import re
import time
from typing import Any

from nutch2py.backends.servers.solr_client import SolrRejectedError
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.records.document import clean_text
from nutch2py.search.engines.solr_engine import document_fields, open_solr_client, query_error
from nutch2py.search.results.search_results import MAX_ROWS, MAX_START, Hit, SearchResult, first_value
from nutch2py.search.results.snippet import Snippet

_HIGHLIGHT_START, _HIGHLIGHT_END = "\ue000", "\ue001"  # private-use characters, which pages rarely contain
_HIGHLIGHT = re.compile(f"{_HIGHLIGHT_START}([^{_HIGHLIGHT_START}{_HIGHLIGHT_END}]*){_HIGHLIGHT_END}")
_SNIPPET_LENGTH = 240
_QUERY_TOKEN = re.compile(r"[^\W\u2e80-\U0003ffff]+|\S")
_MAX_QUERY_TOKENS = 300
"""Limit of words, signs and Chinese characters in a query: Solr parses recursively, and about 800 exhaust its stack."""


class SolrHandlerSearcher:
    """Answers queries from the first collection of ``solr.server.url``, by its handler ``solr.search.handler``."""

    def __init__(self, conf: Configuration) -> None:
        self.client = open_solr_client(conf)
        self.handler = conf.get_trimmed("solr.search.handler", "nutch").strip("/")

    def search(self, query: str, start: int = 0, rows: int = 10) -> SearchResult:
        """Return the hits from ``start`` on; raise IndexingError when Solr does not respond."""
        started = time.perf_counter()
        start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
        parameters = {
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
        response = self.query_handler(query, **parameters)
        highlighting = response.get("highlighting", {})
        found = response["response"]
        hits = [_make_hit(fields, highlighting.get(str(fields.get("id")), {})) for fields in found["docs"]]
        return SearchResult(query, start, found["numFound"], hits, (time.perf_counter() - started) * 1000)

    def query_handler(self, query: str, **parameters: Any) -> dict[str, Any]:
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


def search_solr_handler(conf: Configuration, query: str, start: int = 0, rows: int = 10) -> SearchResult:
    """Run one query on Solr."""
    searcher = SolrHandlerSearcher(conf)
    try:
        return searcher.search(query, start, rows)
    finally:
        searcher.close()


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
