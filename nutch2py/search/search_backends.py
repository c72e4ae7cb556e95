"""What the search page asks of an index: hits, facets, a document, and why it was found. Embedded or Solr."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.search.explained import tree_lines
from nutch2py.search.plan import Narrowed, exact_name
from nutch2py.search.results import SearchResult
from nutch2py.search.search import search, search_backend, server_searcher, walk
from nutch2py.search.searcher import EmbeddedSearcher
from nutch2py.search.server_searcher import ServerSearcher
from nutch2py.search.solr_search import SolrSearcher
from nutch2py.search.spelling import corrected
from nutch2py.search.suggest import TITLES, Suggester, Suggestions

FACETS = ("host", "type", "lang")
"""Fields whose values narrow a search."""
_MOST = 10  # values of a facet
_FRESH = 5.0  # seconds that an open index is used before newer commits are looked for


Facets = dict[str, list[tuple[str, int]]]
"""Field -> (value, number of documents), the most frequent first."""


class Backend(Protocol):
    """An index as the search page sees it; used from several threads."""

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits; ``filters``: value by field of :data:`FACETS`."""

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits from ``start`` or a ``cursor`` on ("*": the first), and the cursor behind them, "" at the end."""

    def facets(self, query: str, filters: dict[str, str]) -> Facets:
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

    def _open(self) -> EmbeddedSearcher:
        now = time.monotonic()
        if self._searcher is None:
            self._searcher, self._looked = EmbeddedSearcher(self.conf), now
        elif now - self._looked > _FRESH:
            self._looked = now
            try:
                self._searcher.folder.check_version()
                self._searcher.reload()
            except (IndexingError, ValueError, OSError):
                self._searcher = None
                self._searcher = EmbeddedSearcher(self.conf)
        return self._searcher

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._lock:
            return search(self.conf, query, start, rows, self._open(), _narrowed(filters))

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
            if self._suggester is None or not self._suggester.is_of(searcher):
                self._suggester = Suggester(searcher)
            return self._suggester.suggest(typed)

    def corrected(self, query: str) -> str:
        """Return the query with unknown words replaced by near ones."""
        with self._lock:
            return corrected(self._open(), query)

    def facets(self, query: str, filters: dict[str, str]) -> Facets:
        """Return the values that the best hits have; their counts are those of all hits."""
        with self._lock:
            return self._open().facets(query, FACETS, _MOST, _narrowed(filters))

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
        if told is None or fields is None:
            return None
        tree = json.loads(told)
        weights = {name: fields.get(name, "1") for name in self.conf.get_strings("index.weight.fields")}
        power = self.conf.get_trimmed("index.weight.power", "0.02")
        shown = " · ".join(f"{name} {value}" for name, value in weights.items()) or "1"
        return f"score = relevance × weight\nweight: ({shown}) ^ {power}\nrelevance:\n" + "\n".join(tree_lines(tree))


class ServerBackend:
    """A server that was sent our words. Each request has a connection of its own."""

    def __init__(self, conf: Configuration, first: ServerSearcher) -> None:
        self.conf = conf
        self._idle = [first]

    @contextmanager
    def _searcher(self) -> Iterator[ServerSearcher]:
        try:
            searcher = self._idle.pop()
        except IndexError:
            searcher = server_searcher(self.conf) or self._idle[0]
        try:
            yield searcher
        finally:
            self._idle.append(searcher)

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._searcher() as searcher:
            return search(self.conf, query, start, rows, searcher, _narrowed(filters))

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits, and the cursor behind them."""
        with self._searcher() as searcher:
            return walk(searcher, query, start, rows, narrowed, cursor)

    def count(self) -> int:
        """Return how many documents there are."""
        with self._searcher() as searcher:
            return searcher.count()

    def suggest(self, typed: str) -> Suggestions:
        """Return titles that the server finds for what was typed."""
        hits = self.search(typed, {}, 0, TITLES).hits if typed.strip() else []
        return Suggestions([], [(hit.title.text, hit.url) for hit in hits])

    def corrected(self, query: str) -> str:
        """Return the query with unknown words replaced by near ones."""
        with self._searcher() as searcher:
            return corrected(searcher, query)

    def facets(self, query: str, filters: dict[str, str]) -> Facets:
        """Return the values of all hits."""
        with self._searcher() as searcher:
            found = searcher.facets(query, FACETS, 3 * _MOST, _narrowed(filters))
        return {name: whole_types(name, values)[:_MOST] for name, values in found.items()}

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        with self._searcher() as searcher:
            return searcher.get(document_id)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the server's explanation."""
        with self._searcher() as searcher:
            return searcher.explain(query, document_id)


class SolrBackend:
    """A Solr collection without our words, asked by its handler. Each request has a connection of its own."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self._idle = [SolrSearcher(conf)]

    @contextmanager
    def _searcher(self) -> Iterator[SolrSearcher]:
        try:
            searcher = self._idle.pop()
        except IndexError:
            searcher = SolrSearcher(self.conf)
        try:
            yield searcher
        finally:
            self._idle.append(searcher)

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._searcher() as searcher:
            return searcher.search(narrowed(query, filters), start, rows)._replace(query=query)

    def walk(self, query: str, narrowed: Narrowed, start: int, rows: int, cursor: str = "") -> tuple[SearchResult, str]:
        """Return hits; the handler knows no cursor and no order by date."""
        if cursor or narrowed.newest:
            raise InputError("this Solr has no words of ours, so no cursor and no order by date: index -reindex")
        names = {"site": "host"}
        return self.search(query, {names.get(name, name): value for name, value in narrowed.filters}, start, rows), ""

    def count(self) -> int:
        """Return how many documents there are."""
        return int(self._ask("*:*", rows=0)["response"]["numFound"])

    def facets(self, query: str, filters: dict[str, str]) -> Facets:
        """Return the values of all hits."""
        answer = self._ask(narrowed(query, filters), rows=0, facet="true", **{"facet.field": list(FACETS),
                           "facet.limit": 3 * _MOST, "facet.mincount": 1})  # fmt: skip
        found: dict[str, list[Any]] = answer.get("facet_counts", {}).get("facet_fields", {})
        return {name: _offered(name, values) for name, values in found.items()}

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
        hits = self.search(typed, {}, 0, TITLES).hits if typed.strip() else []
        return Suggestions([], [(hit.title.text, hit.url) for hit in hits])

    def corrected(self, query: str) -> str:
        """Return what Solr's spelling checker makes of the query."""
        answer = self._ask(query, rows=0, spellcheck="true", **{"spellcheck.collate": "true"})
        found: list[Any] = answer.get("spellcheck", {}).get("collations", [])
        return str(found[1]) if len(found) > 1 and isinstance(found[1], str) else ""

    def _ask(self, query: str, **parameters: Any) -> dict[str, Any]:
        off = {"hl": "false", "facet": "false", "spellcheck": "false"}
        with self._searcher() as searcher:
            return searcher.ask(query, **{**off, **parameters})


def _narrowed(filters: dict[str, str]) -> Narrowed:
    return Narrowed(tuple((exact_name(name), value) for name, value in filters.items()))


def _offered(name: str, flat: list[Any]) -> list[tuple[str, int]]:
    """Return the most frequent values of Solr's list of values and counts; of ``type`` the whole type alone."""
    return whole_types(name, [*zip(map(str, flat[::2]), flat[1::2], strict=False)])[:_MOST]


def whole_types(name: str, values: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return values and counts of a field; of ``type`` the whole types alone."""
    return [(value, count) for value, count in values if name != "type" or "/" in value]


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
