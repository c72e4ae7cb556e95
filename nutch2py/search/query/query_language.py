"""The query language: words, "phrases", field:value, -minus, +must, AND, OR, NOT and parentheses.

Whatever a person types is a query: an unbalanced quote or parenthesis is read as if it were not there, an operator
without operands as nothing. Of words that no operator joins most must match (``index.search.minimum``), any where
``index.search.operator`` is ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_QUERY_WORDS = 200
"""More words than any person types; the rest of a query is left out, so that none costs without bound."""
_MAX_NESTING = 20


class TextNode(NamedTuple):
    """Words to look for; ``field`` is empty for the usual fields, ``phrase`` says that they stood in quotes."""

    text: str
    field: str = ""
    phrase: bool = False


class NotNode(NamedTuple):
    """What a document must not have."""

    part: QueryNode


class AndNode(NamedTuple):
    """All of the parts."""

    parts: tuple[QueryNode, ...]


class OrNode(NamedTuple):
    """At least one of the parts."""

    parts: tuple[QueryNode, ...]


class WordsNode(NamedTuple):
    """Words that no operator joins, in the order in which they were typed."""

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
    """Return the query as a tree, None when it asks for nothing. ``any_word``: words are joined by OR.

    >>> parse_query('nutch -"old crawler" site:apache.org')
    And(parts=(Text(text='nutch', field='', phrase=False), Not(part=Text(text='old crawler', field='', phrase=True)), \
Text(text='apache.org', field='site', phrase=False)))
    """
    return _QueryParser(_tokenize(query), any_word).parse()


def _tokenize(query: str) -> list[_QueryToken]:
    return list(_iter_tokens(query))


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

    def __init__(self, lexemes: list[_QueryToken], any_word: bool) -> None:
        self.tokens, self.any_word = lexemes, any_word
        self.position = 0
        self.depth = 0

    def parse(self) -> QueryNode | None:
        parts: list[QueryNode] = []
        while self.position < len(self.tokens):
            part = self._parse_or()
            if part is not None:
                parts.append(part)
            self.position += self._peek_kind() == ")"  # one too many
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
        """Read words up to OR or a parenthesis. With ``any_word``, those without operator are one alternative each."""
        words: list[TextNode] = []
        first = 0  # how many parts stand before the words
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
    """Yield the words and phrases that a document is to have, those below a minus left out."""
    if isinstance(query, TextNode):
        yield query
    elif isinstance(query, (AndNode, OrNode, WordsNode)):
        for part in query.parts:
            yield from iter_positive_texts(part)
