"""Searching for applications: ``/api/v1/search`` and ``/api/v1/suggest``, over whichever index there is."""

from __future__ import annotations

from nutch2py.backends.embedded_index.index_directory import FACET_NAMES
from nutch2py.errors import InputError
from nutch2py.indexer.search_fields import PAGE_DATE_FIELDS
from nutch2py.records.document import clean_text
from nutch2py.rest.dispatch.operation import ApiCall
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.search_results import Hit, field_values, first_value, format_html
from nutch2py.search.search_backends import FEW_HITS, SearchBackend
from nutch2py.search.search_schemas import (
    FacetValue,
    SearchHit,
    SearchQuery,
    SearchResponse,
    SuggestedPage,
    SuggestQuery,
    SuggestResponse,
)


def search(call: ApiCall) -> SearchResponse:
    """Answer a query."""
    asked: SearchQuery = call.query
    index: SearchBackend = call.context.search_backend
    query = asked.q.strip()
    filters = {name: value for name in FACET_NAMES if (value := str(getattr(asked, name)))}
    narrowed = SearchOptions.from_filters(filters, newest_first=asked.sort == "date", half_life_days=asked.freshness)
    counted = _split_names(asked.facets)
    if unknown := sorted({*counted} - {*FACET_NAMES}):
        raise InputError(f"there is no facet {unknown[0]!r:.50}: {', '.join(FACET_NAMES)}")
    if asked.cursor and (asked.start or asked.collapse not in ("", "none")):
        raise InputError("a cursor goes without start and collapse")
    if asked.collapse:
        narrowed = narrowed._replace(collapse_mode="" if asked.collapse == "none" else asked.collapse)
    result, cursor = index.search_with_cursor(query, narrowed, asked.start, asked.rows, asked.cursor)
    found = index.facets(query, filters) if counted and query else {}
    wanted = _split_names(asked.fields)
    first = not asked.start and asked.cursor in ("", "*")
    return SearchResponse(
        query=clean_text(query),
        total=result.total,
        start=result.start,
        millis=round(result.millis, 3),
        hits=[_search_hit(hit, wanted) for hit in result.hits],
        facets={name: [FacetValue(value=v, count=n) for v, n in found.get(name, ())] for name in counted},
        cursor=cursor or None,
        note=result.note,
        meant=index.correct_query(query) if query and result.total < FEW_HITS and first else "",
    )


def suggest(call: ApiCall) -> SuggestResponse:
    """Answer the beginning of a query."""
    asked: SuggestQuery = call.query
    found = call.context.search_backend.suggest(asked.q)
    pages = [SuggestedPage(title=title, url=url) for title, url in found.pages]
    return SuggestResponse(query=clean_text(asked.q.strip()), queries=found.queries, pages=pages)


def _search_hit(hit: Hit, wanted: tuple[str, ...]) -> SearchHit:
    fields = hit.fields
    return SearchHit(
        id=hit.id,
        url=hit.url,
        title=hit.title.text,
        title_html=format_html(hit.title),
        snippet=hit.snippet.text,
        snippet_html=format_html(hit.snippet),
        score=round(hit.score, 6),
        host=first_value(fields, "host"),
        lang=first_value(fields, "lang"),
        types=[each for each in field_values(fields, "type") if "/" in each],
        date=next((value for name in PAGE_DATE_FIELDS if (value := first_value(fields, name))), None),
        fields={name: field_values(fields, name) for name in wanted},
        more=hit.more,
        others=[url for _, url in hit.others],
    )


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
