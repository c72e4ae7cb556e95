"""Request and response schemas of the search API.

``/api/v1/search``, ``/api/v1/suggest``, the OpenAPI document and the client share them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

FilterValue = Annotated[str, Meta(max_length=300)]


class SearchQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """A query in the language of the command search, with its options.

    ``start`` or ``cursor``: position of the first hit; "*" is the first cursor, a response has the next. ``host`` (with
    its subdomains), ``path`` (``host/folder/``), ``type``, ``lang``, ``date`` (a year, or ``2026-11``): filters.
    ``freshness``: half-life in days of the bonus of newer pages; 0: no freshness; None: as configured. ``collapse``:
    only the best page of each host, or of nearly identical texts ("near"); "": as configured. ``facets``: filters to
    count values of; ``fields``: further fields of pages to return; both separated by commas.
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
    """A page that matches.

    ``title``, ``snippet``: plain text; ``title_html``, ``snippet_html``: escaped, with ``<em>`` around matching words.
    ``score``: higher is better within one query; 0 when sorted by date. ``lang``, ``host``: "" when unknown. ``date``:
    date of the page, or of its fetch, as ISO 8601; None when unknown. ``fields``: the requested fields, each with all
    its values. ``more``: number of other examined pages that it represents when hits are collapsed; ``others``: URLs of
    at most ten of them. ``cut_fields``: names of ``fields``, or "others", whose values are cut, since the response has
    at most ``search.response.max.bytes``.
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
    cut_fields: list[str] = []


class FacetValue(Struct, kw_only=True, frozen=True):
    """A value of a field, and the number of matching pages that have it."""

    value: str
    count: int


class SearchResponse(Struct, rename="camel", kw_only=True, frozen=True):
    """Result of a search: ``total`` pages match. ``cursor``: continues after these hits; None after the last.

    ``corrected_query``: the query with similar words for those that the index does not know or hardly knows, or "".
    ``is_corrected``: whether the hits are those of ``corrected_query``; ``+word`` in the query demands a word as typed.
    ``is_cut``: whether values of some hits are cut (``cut_fields``).
    ``result_token``: identifies these hits in a :class:`ClickReport`; "" when searches are not logged (``search.log``).
    """

    query: str
    total: int
    start: int
    millis: float
    hits: list[SearchHit]
    facets: dict[str, list[FacetValue]]
    cursor: str | None
    corrected_query: str
    is_corrected: bool = False
    note: str = ""
    result_token: str = ""
    is_cut: bool = False


class ClickReport(Struct, rename="camel", kw_only=True, frozen=True):
    """A click on a hit, for the search log.

    ``result_token``: that of the response. ``position``: 1 for the first hit of all pages. ``dwell_ms``: time until the
    user came back to the hits, in ms; a second report with it replaces the first. ``session``: a random id that the
    application chooses; only its salted hash is stored.
    """

    result_token: Annotated[str, Meta(max_length=100)]
    position: Annotated[int, Meta(ge=1, le=1_000_000)]
    dwell_ms: Annotated[int, Meta(ge=0, le=10**12)] | None = None
    session: Annotated[str, Meta(max_length=64)] = ""


class SuggestQuery(Struct, rename="camel", kw_only=True, frozen=True):
    """The start of a query, as typed so far."""

    q: Annotated[str, Meta(max_length=1000)]


class SuggestedPage(Struct, rename="camel", kw_only=True, frozen=True):
    """A page with the words typed so far in its title."""

    title: str
    url: str


class SuggestResponse(Struct, rename="camel", kw_only=True, frozen=True):
    """Suggestions. ``queries``: the input with its last word completed; each has matches."""

    query: str
    queries: list[str]
    pages: list[SuggestedPage]
