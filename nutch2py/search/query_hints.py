"""What is wrong with a query that is not quite one, and how it was read: every query is answered."""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.search.query_language import MAX_WORDS, Not, Or, Query, Text, parse_query

_QUOTED = re.compile('["“”][^"“”]*["“”]')
_DANGLING = re.compile(r"(?:^|[(（])\s*(AND|OR|&&|\|\|)(?!\S)|(?<!\S)(AND|OR|&&|\|\|)\s*(?:$|[)）])")
_NOT = re.compile(r"(?<!\S)(NOT|[-+!])\s*(?:$|[)）])|(?<!\S)([-+!])(?=\s)")
_FIELD = re.compile(r"(?<!\S)([A-Za-z_][\w.\-]*:)(?=\s|$)")


_WORD = re.compile(r"\w")


class Hint(NamedTuple):
    """``wrong``: quote, parenthesis, operator, not, field, long or empty; ``part``: of the query, what is meant."""

    wrong: str
    part: str = ""


def hints(query: str, any_word: bool = False) -> tuple[list[Hint], str]:
    """Return what is wrong with a query, and the query as it was read; both empty for one in which nothing is.

    >>> hints('title: "crawler OR (')
    ([Hint(wrong='quote', part=''), Hint(wrong='parenthesis', part=''), Hint(wrong='operator', part='OR'), \
Hint(wrong='field', part='title:')], 'title: crawler')
    """
    found = []
    if sum(query.count(sign) for sign in '"“”') % 2:
        found.append(Hint("quote"))
    plain = _QUOTED.sub("x", query)
    if not _paired(plain):
        found.append(Hint("parenthesis"))
    bare = re.sub('["“”]', " ", plain)
    for wrong, pattern in (("operator", _DANGLING), ("not", _NOT), ("field", _FIELD)):
        if match := pattern.search(bare.rstrip("(（ ") if wrong == "operator" else bare):
            found.append(Hint(wrong, match[match.lastindex or 0]))
    tree = parse_query(query, any_word)
    if query.strip() and (tree is None or not written(tree)):
        return found or [Hint("empty")], ""
    if len(query.split()) > MAX_WORDS:
        found.append(Hint("long", str(MAX_WORDS)))
    return found, written(tree) if found and tree is not None and len(query.split()) <= MAX_WORDS else ""


def _paired(query: str) -> bool:
    depth = 0
    for sign in query:
        depth += (sign in "(（") - (sign in ")）")
        if depth < 0:
            return False
    return depth == 0


def written(query: Query, inside: bool = False) -> str:
    """Return a query as somebody would type it.

    >>> written(parse_query('(a OR "b c") -d'))
    '(a OR "b c") -d'
    """
    if isinstance(query, Text):
        if not _WORD.search(query.text):
            return ""
        text = f'"{query.text}"' if query.phrase else query.text
        return f"{query.field}:{text}" if query.field else text
    if isinstance(query, Not):
        part = written(query.part, inside=True)
        return part and f"-{part}"
    parts = [text for part in query.parts if (text := written(part, inside=True))]
    text = " OR ".join(parts) if isinstance(query, Or) else " ".join(parts)
    return f"({text})" if inside and len(parts) > 1 else text
