"""Searching a Solr collection with the configset schema/solr: the answers of :mod:`nutch2py.search.results`."""

from __future__ import annotations

import re
import time
from typing import Any

from nutch2py.backends.solr_client import SolrRefusal
from nutch2py.conf import Configuration
from nutch2py.document import clean_text
from nutch2py.errors import IndexingError, InputError
from nutch2py.search.results import MAX_ROWS, MAX_START, Hit, SearchResult, first_of
from nutch2py.search.snippet import Snippet
from nutch2py.search.solr_engine import connected, failure, visible

_BEFORE, _AFTER = "\ue000", "\ue001"  # around marked words; private characters, which pages hardly have
_MARK = re.compile(f"{_BEFORE}([^{_BEFORE}{_AFTER}]*){_AFTER}")
_SNIPPET = 240
_PIECE = re.compile(r"[^\W\u2e80-\U0003ffff]+|\S")
_MAX_PIECES = 300
"""Words, signs and Chinese characters in a query. Solr reads queries by recursion: about 800 exhaust its stack."""


class SolrSearcher:
    """Answers queries from the first collection of ``solr.server.url``, by its handler ``solr.search.handler``."""

    def __init__(self, conf: Configuration) -> None:
        self.client = connected(conf)
        self.handler = conf.get_trimmed("solr.search.handler", "nutch").strip("/")

    def search(self, query: str, start: int = 0, rows: int = 10) -> SearchResult:
        """Return the hits from ``start`` on; raise IndexingError when Solr does not answer."""
        began = time.perf_counter()
        start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
        parameters = {
            "start": start,
            "rows": rows,
            "fl": "*,pagerank:field(pagerank),score",
            "facet": "false",
            "spellcheck": "false",
            "hl.tag.pre": _BEFORE,
            "hl.tag.post": _AFTER,
            "hl.encoder": "",
            "hl.snippets": 1,
            "hl.fragsize": _SNIPPET,
        }
        answer = self.ask(query, **parameters)
        marked = answer.get("highlighting", {})
        found = answer["response"]
        hits = [_hit(fields, marked.get(str(fields.get("id")), {})) for fields in found["docs"]]
        return SearchResult(query, start, found["numFound"], hits, (time.perf_counter() - began) * 1000)

    def ask(self, query: str, **parameters: Any) -> dict[str, Any]:
        """Return Solr's whole answer; IndexingError when it does not answer, InputError when the query is at fault."""
        asked = re.sub(f"[{_BEFORE}{_AFTER}]", "", clean_text(query))
        if sum(1 for _ in _PIECE.finditer(asked)) > _MAX_PIECES:
            raise InputError(f"the query has more than {_MAX_PIECES} words and signs: ask for less")
        try:
            return self.client.search(asked, self.handler, **parameters)
        except SolrRefusal as refusal:
            if refusal.status == 404:
                raise IndexingError(
                    f"Solr at {self.client.url} has no request handler {self.handler}: load the configset schema/solr "
                    "there, or correct solr.server.url or solr.search.handler"
                ) from refusal
            raise failure(self.client, refusal) from refusal

    def close(self) -> None:
        """Give back the connections."""
        self.client.close()


def solr_search(conf: Configuration, query: str, start: int = 0, rows: int = 10) -> SearchResult:
    """Answer one query from Solr."""
    searcher = SolrSearcher(conf)
    try:
        return searcher.search(query, start, rows)
    finally:
        searcher.close()


def _hit(fields: dict[str, Any], marked: dict[str, list[str]]) -> Hit:
    score = float(fields.pop("score", 0.0))
    document_id = str(fields.get("id", ""))
    url = first_of(fields, "url") or document_id
    title = first_of(fields, "title") or url
    shown = _snippet(marked.get("title", []))
    if not shown.marks:
        shown = Snippet(title[:500], ())
    content = _snippet(marked.get("content", [])) if marked.get("content") else None
    return Hit(
        document_id, url, shown, content or Snippet(first_of(fields, "content")[:_SNIPPET], ()), score, visible(fields)
    )


def _snippet(fragments: list[str]) -> Snippet:
    r"""Return the text of the fragments, and where its marked words are.

    >>> _snippet(["a \ue000word\ue001", "x"])
    Snippet(text='a word … x', marks=((2, 6),))
    """
    text = " ".join(" … ".join(fragments).split())
    parts: list[str] = []
    marks: list[tuple[int, int]] = []
    at = length = 0
    for match in _MARK.finditer(text):
        before = text[at : match.start()]
        length += len(before)
        marks.append((length, length + len(match[1])))
        length += len(match[1])
        parts += [before, match[1]]
        at = match.end()
    plain = "".join([*parts, text[at:]]).replace(_BEFORE, "").replace(_AFTER, "")
    return Snippet(plain, tuple(marks))
