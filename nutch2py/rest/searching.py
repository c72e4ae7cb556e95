"""Searching for applications: ``/api/v1/search`` and ``/api/v1/suggest``, over whichever index there is."""

from __future__ import annotations

from nutch2py.backends.index_folder import FACETS
from nutch2py.document import clean_text
from nutch2py.errors import InputError
from nutch2py.indexer.search_fields import DATES
from nutch2py.rest.operation import Call
from nutch2py.search.interface import (
    FacetValue,
    SearchAnswer,
    SearchAsked,
    SearchHit,
    SuggestAnswer,
    SuggestAsked,
    SuggestedPage,
)
from nutch2py.search.plan import Narrowed
from nutch2py.search.results import Hit, first_of, html, texts_of
from nutch2py.search.search_backends import FEW, Backend


def search(call: Call) -> SearchAnswer:
    """Answer a query."""
    asked: SearchAsked = call.query
    index: Backend = call.office.index
    query = asked.q.strip()
    filters = {name: value for name in FACETS if (value := str(getattr(asked, name)))}
    narrowed = Narrowed.to(filters, newest=asked.sort == "date", half_life=asked.freshness)
    counted = _names(asked.facets)
    if unknown := sorted({*counted} - {*FACETS}):
        raise InputError(f"there is no facet {unknown[0]!r:.50}: {', '.join(FACETS)}")
    if asked.cursor and (asked.start or asked.collapse not in ("", "none")):
        raise InputError("a cursor goes without start and collapse")
    if asked.collapse:
        narrowed = narrowed._replace(collapse="" if asked.collapse == "none" else asked.collapse)
    result, cursor = index.walk(query, narrowed, asked.start, asked.rows, asked.cursor)
    found = index.facets(query, filters) if counted and query else {}
    wanted = _names(asked.fields)
    first = not asked.start and asked.cursor in ("", "*")
    return SearchAnswer(
        query=clean_text(query),
        total=result.total,
        start=result.start,
        millis=round(result.millis, 3),
        hits=[_hit(hit, wanted) for hit in result.hits],
        facets={name: [FacetValue(value=v, count=n) for v, n in found.get(name, ())] for name in counted},
        cursor=cursor or None,
        note=result.note,
        meant=index.corrected(query) if query and result.total < FEW and first else "",
    )


def suggest(call: Call) -> SuggestAnswer:
    """Answer the beginning of a query."""
    asked: SuggestAsked = call.query
    found = call.office.index.suggest(asked.q)
    pages = [SuggestedPage(title=title, url=url) for title, url in found.pages]
    return SuggestAnswer(query=clean_text(asked.q.strip()), queries=found.queries, pages=pages)


def _hit(hit: Hit, wanted: tuple[str, ...]) -> SearchHit:
    fields = hit.fields
    return SearchHit(
        id=hit.id,
        url=hit.url,
        title=hit.title.text,
        title_html=html(hit.title),
        snippet=hit.snippet.text,
        snippet_html=html(hit.snippet),
        score=round(hit.score, 6),
        host=first_of(fields, "host"),
        lang=first_of(fields, "lang"),
        types=[each for each in texts_of(fields, "type") if "/" in each],
        date=next((value for name in DATES if (value := first_of(fields, name))), None),
        fields={name: texts_of(fields, name) for name in wanted},
        more=hit.more,
        others=[url for _, url in hit.others],
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
