"""What the search page asks of an index: hits, facets, a document, and why it was found. Embedded or Solr."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.indexer.search_fields import Weights
from nutch2py.search.collapse import HOST, NO_SKETCHES, collapse_of, collapsed
from nutch2py.search.explained import tree_lines
from nutch2py.search.facets import COUNTED, Counted, offered
from nutch2py.search.plan import Narrowed
from nutch2py.search.results import Hit, SearchResult
from nutch2py.search.search import search, search_backend, searcher_of, server_searcher, walk
from nutch2py.search.searcher import EmbeddedSearcher
from nutch2py.search.server_searcher import ServerSearcher
from nutch2py.search.solr_search import SolrSearcher
from nutch2py.search.spelling import corrected
from nutch2py.search.suggest import TITLES, Remembered, Suggester, Suggestions

T = TypeVar("T")
FEW = 3
"""Fewer hits than that, and another spelling is offered."""
_PLAIN = ("host", "type", "lang")  # facets of a Solr without our words
_REMEMBERED = 60.0  # seconds that words of a server are suggested without asking for them anew
_FRESH = 5.0  # seconds that an open index is used before newer commits are looked for


class Backend(Protocol):
    """An index as the search page sees it; used from several threads."""

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits; ``filters``: value by facet."""

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits from ``start`` or a ``cursor`` on ("*": the first), and the cursor behind them, "" at the end."""

    def facets(self, query: str, filters: dict[str, str]) -> Counted:
        """Return the values by which the result can be narrowed."""

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document, None when it is not in the index."""

    def explain(self, query: str, document_id: str) -> str | None:
        """Return why a document has its score, as text of several lines; None when the query does not find it."""

    def corrected(self, query: str) -> str:
        """Return what was perhaps meant by a query that finds little, which finds something; empty: nothing better."""

    def suggest(self, typed: str) -> Suggestions:
        """Return what may be meant by the beginning of a query."""

    def count(self) -> int:
        """Return how many documents there are."""


def backend(conf: Configuration) -> Backend:
    """Return the index that :func:`nutch2py.search.search.search_backend` names."""
    if search_backend(conf) == "embedded":
        return EmbeddedBackend(conf)
    searcher = server_searcher(conf)
    return SolrBackend(conf) if searcher is None else ServerBackend(conf, searcher)


class EmbeddedBackend:
    """The embedded index. It is opened again when it was rebuilt, and shows commits a few seconds old at most."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self._lock = threading.Lock()
        self._searcher: EmbeddedSearcher | None = None
        self._looked = 0.0
        self._suggester: Suggester | None = None
        self._commit: object = None

    def _open(self) -> EmbeddedSearcher:
        now = time.monotonic()
        if self._searcher is not None and now - self._looked > _FRESH:
            self._looked = now
            try:
                self._searcher.folder.check_version()
                commit = self._searcher.folder.commit()  # before the reload, which may see one that is newer still
                if commit != self._commit:
                    self._searcher.reload()
                    self._commit, self._suggester = commit, None  # other documents have other words
            except (IndexingError, ValueError, OSError):
                self._searcher = self._commit = self._suggester = None
        if self._searcher is None:
            self._searcher, self._looked = EmbeddedSearcher(self.conf), now
        return self._searcher

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._lock:
            return search(self.conf, query, start, rows, self._open(), Narrowed.to(filters))

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits, and the cursor behind them."""
        with self._lock:
            return walk(self._open(), query, start, rows, narrowed, cursor)

    def count(self) -> int:
        """Return how many documents there are."""
        with self._lock:
            return self._open().count()

    def suggest(self, typed: str) -> Suggestions:
        """Return words of the index that begin as the last one typed, and titles."""
        with self._lock:
            searcher = self._open()
            self._suggester = self._suggester or Suggester(searcher)
            return self._suggester.suggest(typed)

    def corrected(self, query: str) -> str:
        """Return the query with unknown words replaced by near ones."""
        with self._lock:
            return corrected(self._open(), query)

    def facets(self, query: str, filters: dict[str, str]) -> Counted:
        """Return the values that the best hits have; their counts are those of all hits."""
        with self._lock:
            return offered(self._open().facets(query, Narrowed.to(filters)), filters)

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        with self._lock:
            return self._open().get(document_id)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return BM25's parts as an indented tree, and the weight that multiplies them."""
        with self._lock:
            searcher = self._open()
            told = searcher.explain(query, document_id)
            fields = searcher.get(document_id)
            aged = searcher.aged(fields) if fields else ""
        if told is None or fields is None:
            return None
        tree = json.loads(told)
        powers = Weights(self.conf).powers
        shown = " · ".join(f"({name} {fields.get(name, '1')}) ^ {power:g}" for name, power in powers.items()) or "1"
        rule = f" × freshness\n{aged}" if aged else ""
        return f"score = relevance × weight{rule}\nweight: {shown}\nrelevance:\n" + "\n".join(tree_lines(tree))


class _Pool(Generic[T]):
    """What asks a server, one for each request at a time; ``make`` gives another where ``first`` and all are taken."""

    def __init__(self, make: Callable[[], T], first: T) -> None:
        self._make, self._idle = make, [first]

    @contextmanager
    def taken(self) -> Iterator[T]:
        """Give one that nobody else has within the block."""
        try:
            searcher = self._idle.pop()
        except IndexError:
            searcher = self._make()
        try:
            yield searcher
        finally:
            self._idle.append(searcher)


class ServerBackend:
    """A server that was sent our words. Each request has a connection of its own."""

    def __init__(self, conf: Configuration, first: ServerSearcher) -> None:
        self.conf = conf
        self._searchers = _Pool(lambda: searcher_of(conf), first)
        self._remembered, self._since = Remembered(), time.monotonic()

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._searchers.taken() as searcher:
            return search(self.conf, query, start, rows, searcher, Narrowed.to(filters))

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits, and the cursor behind them."""
        with self._searchers.taken() as searcher:
            return walk(searcher, query, start, rows, narrowed, cursor)

    def count(self) -> int:
        """Return how many documents there are."""
        with self._searchers.taken() as searcher:
            return searcher.count()

    def suggest(self, typed: str) -> Suggestions:
        """Return words of the index that begin as the last one typed, and titles."""
        if time.monotonic() - self._since > _REMEMBERED:
            self._remembered, self._since = Remembered(), time.monotonic()
        with self._searchers.taken() as searcher:
            return Suggester(searcher, self._remembered).suggest(typed)

    def corrected(self, query: str) -> str:
        """Return the query with unknown words replaced by near ones."""
        with self._searchers.taken() as searcher:
            return corrected(searcher, query)

    def facets(self, query: str, filters: dict[str, str]) -> Counted:
        """Return the values of all hits."""
        with self._searchers.taken() as searcher:
            return offered(searcher.facets(query, Narrowed.to(filters)), filters)

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        with self._searchers.taken() as searcher:
            return searcher.get(document_id)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the server's explanation."""
        with self._searchers.taken() as searcher:
            return searcher.explain(query, document_id)


class SolrBackend:
    """A Solr collection without our words, asked by its handler. Each request has a connection of its own."""

    def __init__(self, conf: Configuration) -> None:
        self._searchers = _Pool(lambda: SolrSearcher(conf), SolrSearcher(conf))
        self._collapse = collapse_of(conf)

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        return self._collapsed(query, filters, start, rows, self._collapse)

    def _search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        if unknown := [name for name in filters if name not in _PLAIN]:
            raise InputError(f"this Solr has no words of ours, so nothing to narrow by {unknown[0]}: index -reindex")
        with self._searchers.taken() as searcher:
            return searcher.search(narrowed(query, filters), start, rows)._replace(query=query)

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits; the handler knows no cursor and no order by date."""
        if cursor or narrowed.newest or narrowed.half_life:
            raise InputError(
                "this Solr has no words of ours, so no cursor, no order by date and no freshness: index -reindex"
            )
        filters = {{"site": "host"}.get(name, name): value for name, value in narrowed.filters}
        by = self._collapse if narrowed.collapse is None else narrowed.collapse
        return self._collapsed(query, filters, start, rows, by), ""

    def _collapsed(self, query: str, filters: dict[str, str], start: int, rows: int, by: str) -> SearchResult:
        if by != HOST:
            found = self._search(query, filters, start, rows)
            return found._replace(note=NO_SKETCHES) if by else found
        began = time.perf_counter()

        def find(begin: int, number: int, _: tuple[str, ...]) -> tuple[int, list[Hit]]:
            found = self._search(query, filters, begin, number)
            return found.total, found.hits

        total, hits, shown, note = collapsed(find, by, start, rows)
        return SearchResult(query, start, total, hits, (time.perf_counter() - began) * 1000, shown, note)

    def count(self) -> int:
        """Return how many documents there are."""
        return int(self._ask("*:*", rows=0)["response"]["numFound"])

    def facets(self, query: str, filters: dict[str, str]) -> Counted:
        """Return the values of all hits."""
        answer = self._ask(narrowed(query, filters), rows=0, facet="true", **{"facet.field": list(_PLAIN),
                           "facet.limit": COUNTED, "facet.mincount": 1})  # fmt: skip
        found: dict[str, list[Any]] = answer.get("facet_counts", {}).get("facet_fields", {})
        pairs = {name: [*zip(map(str, flat[::2]), flat[1::2], strict=False)] for name, flat in found.items()}
        return offered(pairs, filters)

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        documents = self._ask("*:*", rows=1, fq="{!term f=id v=$id}", id=document_id)["response"]["docs"]
        found: dict[str, Any] | None = documents[0] if documents else None
        return found

    def explain(self, query: str, document_id: str) -> str | None:
        """Return Solr's explanation."""
        answer = self._ask(query, rows=1, fq="{!term f=id v=$id}", id=document_id, debug="results")
        told: str | None = answer.get("debug", {}).get("explain", {}).get(document_id)
        return told

    def suggest(self, typed: str) -> Suggestions:
        """Return titles that Solr finds for what was typed."""
        return _titles(self, typed)

    def corrected(self, query: str) -> str:
        """Return what Solr's spelling checker makes of the query."""
        answer = self._ask(query, rows=0, spellcheck="true", **{"spellcheck.collate": "true"})
        found: list[Any] = answer.get("spellcheck", {}).get("collations", [])
        return str(found[1]) if len(found) > 1 and isinstance(found[1], str) else ""

    def _ask(self, query: str, **parameters: Any) -> dict[str, Any]:
        off = {"hl": "false", "facet": "false", "spellcheck": "false"}
        with self._searchers.taken() as searcher:
            return searcher.ask(query, **{**off, **parameters})


def _titles(index: Backend, typed: str) -> Suggestions:
    """Return the titles that a search for what was typed finds."""
    hits = index.search(typed, {}, 0, TITLES).hits if typed.strip() else []
    return Suggestions([], [(hit.title.text, hit.url) for hit in hits])


def narrowed(query: str, filters: dict[str, str], host_field: str = "host") -> str:
    """Return the query with its filters as ``+field:"value"``.

    >>> narrowed("a OR b", {"lang": "zh"})
    '(a OR b) +lang:"zh"'
    """
    if not filters:
        return query
    parts = [f"+{host_field if name == 'host' else name}:{quoted(value)}" for name, value in filters.items()]
    return " ".join([f"({query})", *parts])


def quoted(value: str) -> str:
    """Return a value in quotes, without what would end them."""
    return '"' + value.replace("\\", "").replace('"', "") + '"'
