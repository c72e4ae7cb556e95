"""HybridQuery: the part of a query that is compared with vectors, and the filters that it names."""

from __future__ import annotations

from typing import NamedTuple

from nutch2py.backends.index_fields import EXACT_FIELDS
from nutch2py.search.query.query_language import AndNode, QueryNode, TextNode, WordsNode, parse_query
from nutch2py.search.query.query_plan import FilterClause, make_filter
from nutch2py.search.query.query_relaxation import MAX_WORDS_NEXT_TO_QUOTES, iter_free_texts, relax


class HybridQuery(NamedTuple):
    """The words of a query, and its fields that filter."""

    text: str
    filters: tuple[FilterClause, ...] = ()


def parse_hybrid_query(query: str) -> HybridQuery | None:
    """Return the words of a query and its filters; None for one that demands words.

    Quotes, ``+``, ``-``, ``AND``, ``OR``, ``NOT``, ``prefix*`` and fields of text demand words, which a vector does not
    have. ``site:``, ``lang:`` and other fields with whole values are filters.

    >>> parse_hybrid_query("web crawler site:a.org")
    HybridQuery(text='web crawler', filters=(FilterClause(field='exact', term='site=a.org'),))
    >>> parse_hybrid_query('web -"crawler"'), parse_hybrid_query("site:a.org")
    (None, None)
    """
    tree = parse_query(query)
    if tree is None:
        return None
    if sum(1 for _ in iter_free_texts(tree)) > MAX_WORDS_NEXT_TO_QUOTES:
        tree = relax(tree, phrases_only=True)
    words, filters = list[str](), list[FilterClause]()
    for part in tree.parts if isinstance(tree, AndNode) else (tree,):
        texts = _free_texts(part)
        if texts:
            words += texts
        elif isinstance(part, TextNode) and part.field in EXACT_FIELDS:
            filters.append(make_filter(part.field, part.text))
        else:
            return None
    if not words:
        return None
    return HybridQuery(" ".join(words) if filters else query.strip(), tuple(filters))


def _free_texts(node: QueryNode) -> list[str]:
    """Return the words of a part without operators; an empty list for any other part."""
    texts = node.parts if isinstance(node, WordsNode) else (node,)
    free = [
        text.text
        for text in texts
        if isinstance(text, TextNode) and not (text.field or text.phrase or text.required or text.text.endswith("*"))
    ]
    return free if len(free) == len(texts) else []
