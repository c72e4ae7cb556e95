"""The query language: words, "phrases", field:value, -minus, +must, AND, OR, NOT and parentheses.

Every input is a query: the parser ignores an unbalanced quote or parenthesis and an operator without operands. Most of
the words without operators must match (``index.search.minimum``), or any of them when ``index.search.operator`` is
``or``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_QUERY_WORDS = 200
"""Limit of words in a query; the rest is ignored, which bounds the cost."""
_MAX_NESTING = 20


class TextNode(NamedTuple):
    """Words to search; ``field`` is empty for the default fields, ``phrase`` is true for quoted words."""

    text: str
    field: str = ""
    phrase: bool = False


class NotNode(NamedTuple):
    """A part that a document must not match."""

    part: QueryNode


class AndNode(NamedTuple):
    """All parts must match."""

    parts: tuple[QueryNode, ...]


class OrNode(NamedTuple):
    """At least one part must match."""

    parts: tuple[QueryNode, ...]


class WordsNode(NamedTuple):
    """Words without operators, in the order typed."""

    parts: tuple[TextNode, ...]


QueryNode = TextNode | NotNode | AndNode | OrNode | WordsNode

_TOKEN_PATTERN = re.compile(
    r"""\s*(?:
      (?P<open>[(（])|(?P<close>[)）])
    | (?P<sign>[-+!](?=[^\s\-+!]))
    | (?:(?P<field>[A-Za-z_][\w.\-]*):(?=[^\s:/)]))?
      (?: ["“”](?P<quoted>[^"“”]*)["“”] | (?P<word>[^\s()（）"“”]+) | (?P<stray>["“”]) )
    )""",
    re.VERBOSE,
)


class _QueryToken(NamedTuple):
    kind: str  # "(", ")", "and", "or", "not", "must" or "text"
    text: TextNode = TextNode("")


def parse_query(query: str, any_word: bool = False) -> QueryNode | None:
    """Return the query as a tree, None for an empty query. ``any_word``: join words by OR.

    >>> parse_query('nutch -"old crawler" site:apache.org')
    AndNode(parts=(TextNode(text='nutch', field='', phrase=False), \
NotNode(part=TextNode(text='old crawler', field='', phrase=True)), \
TextNode(text='apache.org', field='site', phrase=False)))
    """
    return _QueryParser([*_iter_tokens(query)], any_word).parse()


def _iter_tokens(query: str) -> Iterator[_QueryToken]:
    words = 0
    position = 0
    while match := _TOKEN_PATTERN.match(query, position):
        position = match.end()
        kind = match.lastgroup
        if kind == "open":
            yield _QueryToken("(")
        elif kind == "close":
            yield _QueryToken(")")
        elif kind == "sign":
            yield _QueryToken("must" if match["sign"] == "+" else "not")
        elif kind in ("word", "quoted"):
            field, text = match["field"] or "", match[kind]
            operator = {"AND": "and", "&&": "and", "OR": "or", "||": "or", "NOT": "not"}.get(text)
            if operator and kind == "word" and not field:
                yield _QueryToken(operator)
            elif text.strip():
                words += 1
                if words > MAX_QUERY_WORDS:
                    return
                yield _QueryToken("text", TextNode(text, field, kind == "quoted"))


class _QueryParser:
    """Recursive descent over ``or := and (OR and)*``, ``and := unary (AND? unary)*``, ``unary := [-+] primary``."""

    def __init__(self, tokens: list[_QueryToken], any_word: bool) -> None:
        self.tokens, self.any_word = tokens, any_word
        self.position = 0
        self.depth = 0

    def parse(self) -> QueryNode | None:
        parts: list[QueryNode] = []
        while self.position < len(self.tokens):
            part = self._parse_or()
            if part is not None:
                parts.append(part)
            self.position += self._peek_kind() == ")"  # an unbalanced parenthesis
        return _combine(AndNode, parts)

    def _peek_kind(self) -> str:
        return self.tokens[self.position].kind if self.position < len(self.tokens) else ""

    def _parse_or(self) -> QueryNode | None:
        parts: list[QueryNode] = []
        while True:
            part = self._parse_and()
            if part is not None:
                parts.append(part)
            if self._peek_kind() != "or":
                return _combine(OrNode, parts)
            self.position += 1

    def _parse_and(self) -> QueryNode | None:
        """Parse words up to OR or a parenthesis. With ``any_word``, each word without operator is an alternative."""
        words: list[TextNode] = []
        first = 0  # number of parts before the words
        must: list[QueryNode] = []
        may: list[QueryNode] = []
        joined = must_last = False
        while self._peek_kind() not in ("", "or", ")"):
            if self._peek_kind() == "and":
                self.position += 1
                joined = True
                if may:
                    must.append(may.pop())
                elif words and not must_last:
                    must.append(words.pop())
                continue
            plus = self._peek_kind() == "must"
            part = self._parse_unary()
            if part is None:
                continue
            must_last = joined or plus or isinstance(part, NotNode) or not self.any_word
            if (
                not self.any_word
                and not (joined or plus)
                and isinstance(part, TextNode)
                and not part.field
                and not part.phrase
            ):
                first = first if words else len(must)
                words.append(part)
                must_last = False
            elif must_last:
                must.append(part)
            else:
                may.append(part)
            joined = False
        either = _combine(OrNode, may)
        if words:
            must.insert(first, words[0] if len(words) == 1 else WordsNode(tuple(words)))
        return _combine(AndNode, [*must, either] if either is not None else must)

    def _parse_unary(self) -> QueryNode | None:
        negative = False
        while self._peek_kind() in ("not", "must"):
            negative ^= self._peek_kind() == "not"
            self.position += 1
        part = self._parse_primary()
        return NotNode(part) if negative and part is not None else part

    def _parse_primary(self) -> QueryNode | None:
        kind = self._peek_kind()
        if kind == "text":
            self.position += 1
            return self.tokens[self.position - 1].text
        if kind == "(":
            self.position += 1
            if self.depth >= _MAX_NESTING:
                return None
            self.depth += 1
            inside = self._parse_or()
            self.depth -= 1
            self.position += self._peek_kind() == ")"
            return inside
        if kind == "and":
            self.position += 1
        return None


def _combine(kind: type[AndNode | OrNode], parts: list[QueryNode]) -> QueryNode | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def iter_positive_texts(query: QueryNode | None) -> Iterator[TextNode]:
    """Yield the words and phrases that a document must have, without those below a minus."""
    if isinstance(query, TextNode):
        yield query
    elif isinstance(query, (AndNode, OrNode, WordsNode)):
        for part in query.parts:
            yield from iter_positive_texts(part)
