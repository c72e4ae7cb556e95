"""What applications ask an index and get, as types.

They are those of ``/api/v1/search`` and ``/api/v1/suggest``, of the OpenAPI document, and of the client.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

FilterValue = Annotated[str, Meta(max_length=300)]


class SearchQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """A query, in the language of the command search, and which of its hits.

    ``start`` or ``cursor``: behind which hits; "*" is the first cursor, an answer has the next. ``host`` (with what is
    below it), ``path`` (``host/folder/``), ``type``, ``lang``, ``date`` (a year, or ``2026-11``): only these pages.
    ``freshness``: days after which a page has lost half of what newer ones gain, 0: dates do not count; None: as
    configured. ``collapse``: the best page only of each host, or of nearly the same texts ("near"); "": as configured.
    ``facets``: of which of these to count values, ``fields``: which other fields of pages to give, parted by commas.
    """

    q: Annotated[str, Meta(max_length=1000)]
    start: Annotated[int, Meta(ge=0, le=100_000)] = 0
    rows: Annotated[int, Meta(ge=0, le=100)] = 10
    cursor: Annotated[str, Meta(max_length=2000)] = ""
    sort: Literal["relevance", "date"] = "relevance"
    freshness: Annotated[float, Meta(ge=0, le=36_500)] | None = None
    collapse: Literal["", "none", "host", "near"] = ""
    host: FilterValue = ""
    path: FilterValue = ""
    type: FilterValue = ""
    lang: FilterValue = ""
    date: FilterValue = ""
    facets: FilterValue = ""
    fields: FilterValue = ""


class SearchHit(Struct, rename="camel", kw_only=True, frozen=True):
    """A page that was found.

    ``title``, ``snippet``: plain text; ``title_html``, ``snippet_html``: escaped, with ``<em>`` around the words that
    were found. ``score``: higher is better, within one query, 0 by date. ``lang``, ``host``: "" where not known.
    ``date``: when it was written, as far as is known, or fetched, as ISO 8601; None: not known. ``fields``: those
    asked for, each with all its values. ``more``: how many other pages it stands for, of those looked at, where hits
    are collapsed; ``others``: URLs of ten of them at most.
    """

    id: str
    url: str
    title: str
    title_html: str
    snippet: str
    snippet_html: str
    score: float
    host: str
    lang: str
    types: list[str]
    date: str | None
    fields: dict[str, list[str]]
    more: int = 0
    others: list[str] = []


class FacetValue(Struct, kw_only=True, frozen=True):
    """A value of a field, and how many of the pages found have it."""

    value: str
    count: int


class SearchResponse(Struct, rename="camel", kw_only=True, frozen=True):
    """What was found: ``total`` pages match. ``cursor``: where the hits behind these begin; None: there are none.

    ``meant``: what was perhaps meant by a query that finds little, or "".
    """

    query: str
    total: int
    start: int
    millis: float
    hits: list[SearchHit]
    facets: dict[str, list[FacetValue]]
    cursor: str | None
    meant: str
    note: str = ""


class SuggestQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """The beginning of a query, as somebody types it."""

    q: Annotated[str, Meta(max_length=1000)]


class SuggestedPage(Struct, rename="camel", kw_only=True, frozen=True):
    """A page whose title has the words typed so far."""

    title: str
    url: str


class SuggestResponse(Struct, rename="camel", kw_only=True, frozen=True):
    """What may be meant. ``queries``: what was typed with its last word completed, each of which finds something."""

    query: str
    queries: list[str]
    pages: list[SuggestedPage]
