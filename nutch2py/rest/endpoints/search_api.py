"""Search API for applications: ``/api/v1/search`` and ``/api/v1/suggest``."""

from __future__ import annotations

from http import HTTPStatus

from msgspec import structs

from nutch2py.backends.index_fields import FACET_NAMES
from nutch2py.errors import InputError
from nutch2py.indexer.search_fields import PAGE_DATE_FIELDS
from nutch2py.records.document import clean_text
from nutch2py.rest.dispatch.operation import ApiCall
from nutch2py.rest.http_error import HttpError
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.response_limit import ResponseBudget, max_read_characters, response_byte_limit
from nutch2py.search.results.search_results import Hit, field_values, first_value, format_html
from nutch2py.search.search_backends import needs_correction
from nutch2py.search.search_schemas import (
    ClickReport,
    FacetValue,
    SearchHit,
    SearchQuery,
    SearchResponse,
    SuggestedPage,
    SuggestQuery,
    SuggestResponse,
)

_MAX_CHARACTERS = 300  # of a host, a language and a date, which pages may name
_MAX_TYPES, _MAX_TYPE_CHARACTERS = 10, 100
_OTHERS = "others"
"""Name in ``cutFields`` of URLs of other pages."""


def search(call: ApiCall) -> SearchResponse:
    """Run a query."""
    params: SearchQuery = call.query
    query = params.q.strip()
    filters = {name: value for name in FACET_NAMES if (value := str(getattr(params, name)))}
    options = SearchOptions.from_filters(filters, newest_first=params.sort == "date", half_life_days=params.freshness)
    facets = _split_names(params.facets)
    if unknown := sorted({*facets} - {*FACET_NAMES}):
        raise InputError(f"unknown facet {unknown[0]!r:.50}: use {', '.join(FACET_NAMES)}")
    if params.cursor and (params.start or params.collapse not in ("", "none")):
        raise InputError("a cursor excludes start and collapse")
    if params.collapse:
        options = options._replace(collapse_mode="" if params.collapse == "none" else params.collapse)
    fields = _split_names(params.fields)
    limit = response_byte_limit(call.context.conf)
    options = options._replace(max_characters=max_read_characters(limit, params.rows))
    is_first_page = not params.start and params.cursor in ("", "*")
    with call.context.searchers.acquire() as index:
        result = index.search(
            query, params.start, params.rows, options, cursor=params.cursor, with_facets=bool(facets and query)
        )
        corrected_query = result.corrected_query
        if query and not corrected_query and needs_correction(result) and is_first_page:
            corrected_query = index.correct_query(query)
    logger = call.context.search_logger
    token = ""
    if logger is not None and params.rows:
        token = logger.log_search(query, result.total, result.start, [hit.id for hit in result.hits], "api")
    facet_values = {name: result.facets.get(name, []) for name in facets}
    budget = ResponseBudget(limit, len(result.hits), options.max_characters)
    budget.spend([query, corrected_query, facet_values])
    hits = [_search_hit(hit, fields, budget) for hit in result.hits]
    return SearchResponse(
        query=clean_text(query),
        total=result.total,
        start=result.start,
        millis=round(result.millis, 3),
        hits=hits,
        facets={name: [FacetValue(value=v, count=n) for v, n in values] for name, values in facet_values.items()},
        cursor=result.cursor or None,
        note=result.note,
        corrected_query=corrected_query,
        is_corrected=bool(result.corrected_query),
        result_token=token,
        is_cut=budget.is_cut,
    )


def report_click(call: ApiCall) -> None:
    """Log a click on a shown result; raise InputError for a token or a position that is not valid."""
    report: ClickReport = call.body
    logger = call.context.search_logger
    if logger is None:
        raise HttpError(HTTPStatus.NOT_FOUND, "clicks are not logged: search.log is off")
    if not logger.log_click(report.result_token, report.position, report.dwell_ms, report.session):
        raise InputError("unknown or expired resultToken, or a position that was not shown")


def suggest(call: ApiCall) -> SuggestResponse:
    """Return completions of a query and pages that match it."""
    params: SuggestQuery = call.query
    with call.context.searchers.acquire() as index:
        result = index.suggest(params.q)
    pages = [SuggestedPage(title=title, url=url) for title, url in result.pages]
    return SuggestResponse(query=clean_text(params.q.strip()), queries=result.queries, pages=pages)


def _search_hit(hit: Hit, field_names: tuple[str, ...], budget: ResponseBudget) -> SearchHit:
    fields = hit.fields
    shown = SearchHit(
        id=hit.id,
        url=hit.url,
        title=hit.title.text,
        title_html=format_html(hit.title),
        snippet=hit.snippet.text,
        snippet_html=format_html(hit.snippet),
        score=round(hit.score, 6),
        host=first_value(fields, "host")[:_MAX_CHARACTERS],
        lang=first_value(fields, "lang")[:_MAX_CHARACTERS],
        types=[each[:_MAX_TYPE_CHARACTERS] for each in field_values(fields, "type") if "/" in each][:_MAX_TYPES],
        date=next((value[:_MAX_CHARACTERS] for name in PAGE_DATE_FIELDS if (value := first_value(fields, name))), None),
        fields={},
        more=hit.more,
        others=[url for _, url in hit.others],
    )
    base = [getattr(shown, name) for name in shown.__struct_fields__ if name not in ("others", "fields")]
    values = {_OTHERS: shown.others, **{name: field_values(fields, name) for name in field_names}}
    kept, cut = budget.cut_fields(values, base)
    return structs.replace(shown, others=kept.pop(_OTHERS), fields=kept, cut_fields=cut)


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
