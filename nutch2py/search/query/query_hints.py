"""Query hints: problems of a malformed query and the form in which it was read; every query is answered."""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.search.query.query_language import MAX_QUERY_WORDS, NotNode, OrNode, QueryNode, TextNode, parse_query

_QUOTED_PHRASE = re.compile('["“”][^"“”]*["“”]')
_DANGLING_OPERATOR = re.compile(r"(?:^|[(（])\s*(AND|OR|&&|\|\|)(?!\S)|(?<!\S)(AND|OR|&&|\|\|)\s*(?:$|[)）])")
_DANGLING_SIGN = re.compile(r"(?<!\S)(NOT|[-+!])\s*(?:$|[)）])|(?<!\S)([-+!])(?=\s)")
_EMPTY_FIELD = re.compile(r"(?<!\S)([A-Za-z_][\w.\-]*:)(?=\s|$)")


_WORD = re.compile(r"\w")


class QueryHint(NamedTuple):
    """``problem``: quote, parenthesis, operator, not, field, long or empty; ``fragment``: part of the query."""

    problem: str
    fragment: str = ""


def find_query_hints(query: str) -> tuple[list[QueryHint], str]:
    """Return the problems of a query and the query as it was read; both are empty for a query without problems.

    >>> find_query_hints('title: "crawler OR (')
    ([QueryHint(problem='quote', fragment=''), QueryHint(problem='parenthesis', fragment=''), \
QueryHint(problem='operator', fragment='OR'), QueryHint(problem='field', fragment='title:')], 'title: crawler')
    """
    hints = []
    if sum(query.count(sign) for sign in '"“”') % 2:
        hints.append(QueryHint("quote"))
    plain = _QUOTED_PHRASE.sub("x", query)
    if not _is_balanced(plain):
        hints.append(QueryHint("parenthesis"))
    bare = re.sub('["“”]', " ", plain)
    for problem, pattern in (("operator", _DANGLING_OPERATOR), ("not", _DANGLING_SIGN), ("field", _EMPTY_FIELD)):
        if match := pattern.search(bare.rstrip("(（ ") if problem == "operator" else bare):
            hints.append(QueryHint(problem, match[match.lastindex or 0]))
    tree = parse_query(query)
    if query.strip() and (tree is None or not format_query(tree)):
        return hints or [QueryHint("empty")], ""
    if len(query.split()) > MAX_QUERY_WORDS:
        hints.append(QueryHint("long", str(MAX_QUERY_WORDS)))
    return hints, format_query(tree) if hints and tree is not None and len(query.split()) <= MAX_QUERY_WORDS else ""


def _is_balanced(query: str) -> bool:
    depth = 0
    for sign in query:
        depth += (sign in "(（") - (sign in ")）")
        if depth < 0:
            return False
    return depth == 0


def format_query(query: QueryNode, nested: bool = False) -> str:
    """Return a query as a user would type it.

    >>> format_query(parse_query('(a OR "b c") -d'))
    '(a OR "b c") -d'
    """
    if isinstance(query, TextNode):
        if not _WORD.search(query.text):
            return ""
        text = f'"{query.text}"' if query.phrase else query.text
        return f"{query.field}:{text}" if query.field else text
    if isinstance(query, NotNode):
        part = format_query(query.part, nested=True)
        return part and f"-{part}"
    parts = [text for part in query.parts if (text := format_query(part, nested=True))]
    text = " OR ".join(parts) if isinstance(query, OrNode) else " ".join(parts)
    return f"({text})" if nested and len(parts) > 1 else text
