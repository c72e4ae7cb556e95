"""Searching a server, Solr or OpenSearch, by the plans of :mod:`nutch2py.search.plan`: as the embedded index is."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol

from nutch2py.backends.analysis import Analyzer
from nutch2py.backends.index_folder import FACETS, TERMS
from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError
from nutch2py.search.beginnings import SAMPLED, Beginning, terms_beginning
from nutch2py.search.collapse import collapse_of
from nutch2py.search.facets import COUNTED, Counted, field_of_facet
from nutch2py.search.freshness import Aging, Freshness
from nutch2py.search.plan import (
    NOT_NARROWED,
    Filter,
    Narrowed,
    Plan,
    Planner,
    Row,
    Rules,
    known_languages,
)
from nutch2py.search.results import Found

_LANGUAGES_FRESH = 60.0  # seconds
LONGEST, PATIENCE = 30.0, 5.0
"""Seconds for one answer; for a server that is away: somebody waits."""
ANALYSIS = f"{TERMS}analysis"


class Answered(NamedTuple):
    """``total`` documents match; ``hits`` of them are here. ``cursor``: where those behind begin, "" after the last."""

    total: int
    hits: list[Found]
    cursor: str = ""


class Engine(Protocol):
    """A server in its own language; used by one thread at a time. Failures are IndexingError or InputError."""

    @property
    def url(self) -> str:
        """The address, as messages may show it."""

    def find(
        self,
        plan: Plan,
        start: int,
        rows: int,
        newest: bool = False,
        cursor: str = "",
        fresh: Freshness | None = None,
    ) -> Answered:
        """Return the hits from ``start`` on, or from a ``cursor`` on ("*" is the first); ``newest``: by date."""

    def values(self, plan: Plan, fields: tuple[str, ...], most: int) -> dict[str, list[tuple[str, int]]]:
        """Return the most frequent values of fields among the documents that match."""

    def near(self, term: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content that differs in ``distance`` letters or less."""

    def beginning(self, start: str, most: int) -> list[dict[str, Any]]:
        """Return the documents of most weight with a term in title or content that begins so."""

    def numbers(self, rows: list[Row]) -> list[int]:
        """Return how many documents have each row."""

    def explain(self, plan: Plan, document_id: str, fresh: Freshness | None = None) -> str | None:
        """Return how a score comes about, in lines."""

    def close(self) -> None:
        """Give back the connections."""


class ServerSearcher:
    """Asks an :class:`Engine` what :class:`nutch2py.search.searcher.EmbeddedSearcher` asks its index."""

    def __init__(self, conf: Configuration, engine: Engine) -> None:
        self.engine, self.analyzer = engine, Analyzer.of(conf)
        self._rules, self._aging, self.collapse = Rules.of(conf), Aging(conf), collapse_of(conf)
        self._looked = float("-inf")
        self._planner: Planner | None = None

    @property
    def planner(self) -> Planner:
        """What makes plans, with the languages that the index has had a minute ago."""
        if self._planner is None or time.monotonic() - self._looked > _LANGUAGES_FRESH:
            ours = Filter(ANALYSIS, self.analyzer.version)
            found = dict(self.engine.values(ours, ("lang",), 100).get("lang", ()))
            self._planner = Planner(self._rules, self.analyzer, known_languages(found))
            self._looked = time.monotonic()
        return self._planner

    def is_ready(self) -> bool:
        """Tell whether the server has documents with the words of this version."""
        return bool(self.engine.find(Filter(ANALYSIS, self.analyzer.version), 0, 0).total)

    def demand_ready(self) -> None:
        """Raise IndexingError unless it has."""
        if not self.is_ready():
            raise IndexingError(
                f"the index {self.engine.url} has no documents with the words of this version: run index -reindex into "
                "an index that has our fields, with index.terms"
            )

    def search(
        self, query: str, start: int = 0, rows: int = 10, narrowed: Narrowed = NOT_NARROWED
    ) -> tuple[int, list[Found], frozenset[str]]:
        """Return how many documents match, those from ``start`` on, and the terms to mark in them."""
        found, terms = self.walk(query, start, rows, narrowed)
        return found.total, found.hits, terms

    def walk(
        self, query: str, start: int, rows: int, narrowed: Narrowed = NOT_NARROWED, cursor: str = ""
    ) -> tuple[Answered, frozenset[str]]:
        """Return the same; from a ``cursor`` on, if there is one, with that of the hits behind."""
        planned = self.planner.plan(query)
        if planned.plan is None:
            return Answered(0, []), planned.terms
        plan = narrowed.applied(planned.plan, self.planner)
        fresh, cursor = (None, cursor) if narrowed.newest else self._aging.at(narrowed.half_life, cursor)
        found = self.engine.find(plan, start, rows, narrowed.newest, cursor, fresh)
        return (found._replace(cursor=fresh.behind(found.cursor)) if fresh else found), planned.terms

    def count_matching(self, query: str, narrowed: Narrowed = NOT_NARROWED) -> int:
        """Return how many documents match."""
        plan = self.planner.plan(query, ranked=False).plan
        return 0 if plan is None else self.engine.find(narrowed.applied(plan, self.planner), 0, 0).total

    def count(self) -> int:
        """Return how many documents of this version there are."""
        return self.engine.find(Filter(ANALYSIS, self.analyzer.version), 0, 0).total

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        hits = self.engine.find(Filter("id", document_id), 0, 1).hits
        return hits[0].fields if hits else None

    def facets(self, query: str, narrowed: Narrowed = NOT_NARROWED) -> Counted:
        """Return the most frequent values of :data:`FACETS` among all documents that match, with their numbers."""
        plan = self.planner.plan(query, ranked=False).plan
        if plan is None:
            return {}
        fields = {name: field_of_facet(name) for name in FACETS}
        found = self.engine.values(narrowed.applied(plan, self.planner), tuple(fields.values()), COUNTED)
        return {name: found[field] for name, field in fields.items()}

    def near(self, word: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents with a word that is near, as the embedded index does."""
        terms = self.analyzer.words(word)
        return self.engine.near(terms[0], distance, most) if len(terms) == 1 else []

    def having(self, term: str, most: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        return self.engine.near(term, 0, most)

    def beginning(self, start: str, most: int) -> list[Beginning]:
        """Return terms that begin so, as pages of good standing have them."""
        pages = self.engine.beginning(start, SAMPLED)
        return terms_beginning(start, most, pages, self.engine.numbers, self.analyzer)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return how the score of a document comes about; None when the query does not find it."""
        plan = self.planner.plan(query).plan
        fresh, _ = self._aging.at(None)
        told = None if plan is None else self.engine.explain(plan, document_id, fresh)
        return f"{fresh.told(self.get(document_id) or {})}\n{told}" if told and fresh else told

    def close(self) -> None:
        """Give back the connections."""
        self.engine.close()


def field_of(row_or_filter: Row | Filter) -> str:
    """Return the server's name of a field of a plan."""
    name = row_or_filter.field
    return name if name == "id" or name.startswith(TERMS) else f"{TERMS}{name}"
