"""Searching for applications: ``/api/v1/search``, over whichever index there is."""

from __future__ import annotations

from typing import Any

from nutch2py.document import clean_text
from nutch2py.errors import InputError
from nutch2py.rest.operation import Call
from nutch2py.search.interface import FacetValue, SearchAnswer, SearchAsked, SearchHit
from nutch2py.search.plan import Narrowed, exact_name
from nutch2py.search.results import Hit, SearchResult, html
from nutch2py.search.search_backends import FACETS, Backend

_FEW = 3
"""Fewer hits than that, and another spelling is offered."""
_STEP, _MOST_COLLAPSED = 100, 1_000  # hits looked at, at once and at most, for the best page of each host
_DATES = ("date", "publishedDate", "lastModified", "tstamp")


def search(call: Call) -> SearchAnswer:
    """Answer a query."""
    asked: SearchAsked = call.query
    index: Backend = call.office.index
    query = asked.q.strip()
    filters = {name: value for name in FACETS if (value := str(getattr(asked, name)))}
    narrowed = Narrowed(tuple((exact_name(name), value) for name, value in filters.items()), asked.sort == "date")
    counted = _names(asked.facets)
    if unknown := sorted({*counted} - {*FACETS}):
        raise InputError(f"there is no facet {unknown[0]!r:.50}: {', '.join(FACETS)}")
    if asked.cursor and (asked.start or asked.collapse):
        raise InputError("a cursor goes without start and collapse")
    if asked.collapse:
        result, cursor = _best_of_hosts(index, query, narrowed, asked.start, asked.rows), ""
    else:
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
        meant=index.corrected(query) if query and result.total < _FEW and first else "",
    )


def _best_of_hosts(index: Backend, query: str, narrowed: Narrowed, start: int, rows: int) -> SearchResult:
    """Return the best page of each host, among the first thousand hits; the total is that of all pages."""
    best: dict[str, Hit] = {}
    begin, millis, total = 0, 0.0, 0
    while begin < _MOST_COLLAPSED and len(best) < start + rows:
        found, _ = index.walk(query, narrowed, begin, _STEP)
        millis, total = millis + found.millis, found.total
        for hit in found.hits:
            best.setdefault(_first(hit.fields, "host") or hit.id, hit)
        begin += _STEP
        if begin >= total:
            break
    return SearchResult(query, start, total, [*best.values()][start : start + rows], millis)


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
        host=_first(fields, "host"),
        lang=_first(fields, "lang"),
        types=[value for value in _values(fields, "type") if "/" in value],
        date=next((value for name in _DATES if (value := _first(fields, name))), None),
        fields={name: _values(fields, name) for name in wanted},
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))


def _values(fields: dict[str, Any], name: str) -> list[str]:
    value = fields.get(name, [])
    return [str(each) for each in (value if isinstance(value, list) else [value])]


def _first(fields: dict[str, Any], name: str) -> str:
    return next(iter(_values(fields, name)), "")
