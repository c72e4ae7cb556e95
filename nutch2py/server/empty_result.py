"""Ways out of a search without hits: fewer filters, and single words of the query."""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.search_backends import SearchBackend
from nutch2py.server.search_request import SearchRequest
from nutch2py.server.translations import Translations

_MAX_SEARCHES = 8
"""Searches for one page without hits."""
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_OTHER_WORDS = re.compile(r"(?:(?<!\w)[-+]?\w+:|(?<!\S)-|NOT )(?:\"[^\"]*\"|\S+)")
"""Words of fields and excluded words."""
_WORD = re.compile(r"[^\s\"()]+")


class RelatedSearch(NamedTuple):
    """A search with its link, and the number of its documents."""

    label: str
    url: str
    total: int


class EmptyResultHelp(NamedTuple):
    """Related searches for a search without hits; those with fewer filters have hits."""

    without_filters: list[RelatedSearch]
    single_words: list[RelatedSearch]


def find_related_searches(searcher: SearchBackend, request: SearchRequest, i18n: Translations) -> EmptyResultHelp:
    """Return related searches: at most :data:`_MAX_SEARCHES` are run, each for its total only."""
    filters, query = request.filters, request.query
    with_fewer: list[RelatedSearch] = []
    if filters:
        total = _count(searcher, query, {})
        if total:
            for facet, value in filters.items() if len(filters) > 1 else ():
                rest = {name: each for name, each in filters.items() if name != facet}
                label = i18n("without_one", i18n(facet).lower(), i18n.facet_label(facet, value))
                with_fewer.append(
                    RelatedSearch(label, request.url_without_filter(facet), _count(searcher, query, rest))
                )
            with_fewer.append(RelatedSearch(i18n("without_any"), request.url_for_query(query), total))
    words = _split_words(query)[: _MAX_SEARCHES - len(with_fewer) - 1]
    single = [
        RelatedSearch(word, request.url_for_query(word), _count(searcher, word, {}))
        for word in (words if words != [query] and not with_fewer else ())
    ]
    return EmptyResultHelp([each for each in with_fewer if each.total], single)


def _count(searcher: SearchBackend, query: str, filters: dict[str, str]) -> int:
    result = searcher.search(query, 0, 1, SearchOptions.from_filters(filters))
    return 0 if result.corrected_query else result.total


def _split_words(query: str) -> list[str]:
    """Return the different words of a query, without operators, fields and excluded words.

    >>> _split_words('site:a.org "red fox" OR -blue red title:"big fish"')
    ['red', 'fox']
    """
    found = _OTHER_WORDS.sub(" ", query)
    words = (word.strip("+*~^.,;?!") for word in _WORD.findall(found) if word not in _OPERATORS)
    return [*dict.fromkeys(word for word in words if word)]
