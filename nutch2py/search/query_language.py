"""The query language: words, "phrases", field:value, -minus, +must, AND, OR, NOT and parentheses.

Whatever a person types is a query: an unbalanced quote or parenthesis is read as if it were not there, an operator
without operands as nothing. Of words that no operator joins most must match (``index.search.minimum``), any where
``index.search.operator`` is ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_WORDS = 200
"""More words than any person types; the rest of a query is left out, so that none costs without bound."""
_MAX_DEPTH = 20


class Text(NamedTuple):
    """Words to look for; ``field`` is empty for the usual fields, ``phrase`` says that they stood in quotes."""

    text: str
    field: str = ""
    phrase: bool = False


class Not(NamedTuple):
    """What a document must not have."""

    part: Query


class And(NamedTuple):
    """All of the parts."""

    parts: tuple[Query, ...]


class Or(NamedTuple):
    """At least one of the parts."""

    parts: tuple[Query, ...]


class Some(NamedTuple):
    """Words that no operator joins, in the order in which they were typed."""

    parts: tuple[Text, ...]


Query = Text | Not | And | Or | Some

_LEXEME = re.compile(
    r"""\s*(?:
      (?P<open>[(（])|(?P<close>[)）])
    | (?P<sign>[-+!](?=[^\s\-+!]))
    | (?:(?P<field>[A-Za-z_][\w.\-]*):(?=[^\s:/)]))?
      (?: ["“”](?P<quoted>[^"“”]*)["“”] | (?P<word>[^\s()（）"“”]+) | (?P<stray>["“”]) )
    )""",
    re.VERBOSE,
)


class _Lexeme(NamedTuple):
    kind: str  # "(", ")", "and", "or", "not", "must" or "text"
    text: Text = Text("")


def parse_query(query: str, any_word: bool = False) -> Query | None:
    """Return the query as a tree, None when it asks for nothing. ``any_word``: words are joined by OR.

    >>> parse_query('nutch -"old crawler" site:apache.org')
    And(parts=(Text(text='nutch', field='', phrase=False), Not(part=Text(text='old crawler', field='', phrase=True)), \
Text(text='apache.org', field='site', phrase=False)))
    """
    return _Parser(_lexemes(query), any_word).parse()


def _lexemes(query: str) -> list[_Lexeme]:
    return list(_scan(query))


def _scan(query: str) -> Iterator[_Lexeme]:
    words = 0
    position = 0
    while match := _LEXEME.match(query, position):
        position = match.end()
        kind = match.lastgroup
        if kind == "open":
            yield _Lexeme("(")
        elif kind == "close":
            yield _Lexeme(")")
        elif kind == "sign":
            yield _Lexeme("must" if match["sign"] == "+" else "not")
        elif kind in ("word", "quoted"):
            field, text = match["field"] or "", match[kind]
            operator = {"AND": "and", "&&": "and", "OR": "or", "||": "or", "NOT": "not"}.get(text)
            if operator and kind == "word" and not field:
                yield _Lexeme(operator)
            elif text.strip():
                words += 1
                if words > MAX_WORDS:
                    return
                yield _Lexeme("text", Text(text, field, kind == "quoted"))


class _Parser:
    """Recursive descent over ``or := and (OR and)*``, ``and := unary (AND? unary)*``, ``unary := [-+] primary``."""

    def __init__(self, lexemes: list[_Lexeme], any_word: bool) -> None:
        self.lexemes, self.any_word = lexemes, any_word
        self.at = 0
        self.depth = 0

    def parse(self) -> Query | None:
        parts: list[Query] = []
        while self.at < len(self.lexemes):
            part = self._alternatives()
            if part is not None:
                parts.append(part)
            self.at += self._kind() == ")"  # one too many
        return _joined(And, parts)

    def _kind(self) -> str:
        return self.lexemes[self.at].kind if self.at < len(self.lexemes) else ""

    def _alternatives(self) -> Query | None:
        parts: list[Query] = []
        while True:
            part = self._conjunction()
            if part is not None:
                parts.append(part)
            if self._kind() != "or":
                return _joined(Or, parts)
            self.at += 1

    def _conjunction(self) -> Query | None:
        """Read words up to OR or a parenthesis. With ``any_word``, those without operator are one alternative each."""
        words: list[Text] = []
        first = 0  # how many parts stand before the words
        must: list[Query] = []
        may: list[Query] = []
        joined = must_last = False
        while self._kind() not in ("", "or", ")"):
            if self._kind() == "and":
                self.at += 1
                joined = True
                if may:
                    must.append(may.pop())
                elif words and not must_last:
                    must.append(words.pop())
                continue
            plus = self._kind() == "must"
            part = self._unary()
            if part is None:
                continue
            must_last = joined or plus or isinstance(part, Not) or not self.any_word
            if (
                not self.any_word
                and not (joined or plus)
                and isinstance(part, Text)
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
        either = _joined(Or, may)
        if words:
            must.insert(first, words[0] if len(words) == 1 else Some(tuple(words)))
        return _joined(And, [*must, either] if either is not None else must)

    def _unary(self) -> Query | None:
        negative = False
        while self._kind() in ("not", "must"):
            negative ^= self._kind() == "not"
            self.at += 1
        part = self._primary()
        return Not(part) if negative and part is not None else part

    def _primary(self) -> Query | None:
        kind = self._kind()
        if kind == "text":
            self.at += 1
            return self.lexemes[self.at - 1].text
        if kind == "(":
            self.at += 1
            if self.depth >= _MAX_DEPTH:
                return None
            self.depth += 1
            inside = self._alternatives()
            self.depth -= 1
            self.at += self._kind() == ")"
            return inside
        if kind == "and":
            self.at += 1
        return None


def _joined(kind: type[And | Or], parts: list[Query]) -> Query | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def wanted(query: Query | None) -> Iterator[Text]:
    """Yield the words and phrases that a document is to have, those below a minus left out."""
    if isinstance(query, Text):
        yield query
    elif isinstance(query, (And, Or, Some)):
        for part in query.parts:
            yield from wanted(part)
