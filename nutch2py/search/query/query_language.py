"""The query language: words, "phrases", field:value, -minus, +must, AND, OR, NOT and parentheses.

Every input is a query: the parser ignores an unbalanced quote or parenthesis and an operator without operands.
Parentheses without an operator in or next to them are punctuation. Words without operators rank documents: one of them
must match, and the more match, the better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_QUERY_WORDS = 100
"""Limit of words in a query; the rest is ignored, which bounds the cost."""
_MAX_NESTING = 20
_FREE_WORD = re.compile(r"(?<![\w:\-])[^\W\d_]+(?![\w:])")


class TextNode(NamedTuple):
    """Words to search.

    Attributes:
        text: The words.
        field: The field, "" for the default fields.
        phrase: Whether the words are quoted.
        required: Whether ``+`` or ``AND`` demands them.
    """

    text: str
    field: str = ""
    phrase: bool = False
    required: bool = False


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
      (?: (?<!\w)["“”](?P<quoted>[^"“”]*)["“”](?!\w) | (?P<word>[^\s()（）"“”]+) | (?P<stray>["“”]) )
    )""",
    re.VERBOSE,
)


_OPERATORS = frozenset({"and", "or", "not", "must"})


class _QueryToken(NamedTuple):
    kind: str  # "(", ")", "and", "or", "not", "must" or "text"
    text: TextNode = TextNode("")


def parse_query(query: str) -> QueryNode | None:
    """Return the query as a tree, None for an empty query.

    >>> tree = parse_query('nutch -"old crawler" site:apache.org')
    >>> tree == AndNode(
    ...     (TextNode("nutch"), NotNode(TextNode("old crawler", phrase=True)), TextNode("apache.org", "site"))
    ... )
    True
    """
    return _QueryParser(_remove_prose_parentheses([*_iter_tokens(query)])).parse()


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


def _remove_prose_parentheses(tokens: list[_QueryToken]) -> list[_QueryToken]:
    """Return the tokens without pairs of parentheses that have no operator in or next to them."""
    removed, open_positions = set[int](), list[tuple[int, int]]()
    operators = 0  # seen so far
    for at, token in enumerate(tokens):
        if token.kind == "(":
            open_positions.append((at, operators))
        elif token.kind == ")" and open_positions:
            start, before = open_positions.pop()
            follows = tokens[at + 1].kind if at + 1 < len(tokens) else ""
            precedes = tokens[start - 1].kind if start else ""
            if operators == before and follows not in ("and", "or") and precedes not in _OPERATORS:
                removed |= {start, at}
        operators += token.kind in _OPERATORS
    return [token for at, token in enumerate(tokens) if at not in removed]


class _QueryParser:
    """Recursive descent over ``or := and (OR and)*``, ``and := unary (AND? unary)*``, ``unary := [-+] primary``."""

    def __init__(self, tokens: list[_QueryToken]) -> None:
        self.tokens = tokens
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
        """Parse words and operands up to OR or a parenthesis. Words without operator become one node."""
        words: list[TextNode] = []
        first = 0  # number of parts before the words
        parts: list[QueryNode] = []
        is_joined = was_word = False  # AND precedes; the last part is a word without operator
        while self._peek_kind() not in ("", "or", ")"):
            if self._peek_kind() == "and":
                self.position += 1
                is_joined = True
                if was_word:
                    parts.append(words.pop()._replace(required=True))
                    was_word = False
                continue
            is_required = is_joined or self._peek_kind() == "must"
            part = self._parse_unary()
            if part is None:
                continue
            was_word = isinstance(part, TextNode) and not (is_required or part.field or part.phrase)
            if isinstance(part, TextNode) and was_word:
                first = first if words else len(parts)
                words.append(part)
            else:
                parts.append(part._replace(required=True) if isinstance(part, TextNode) and is_required else part)
            is_joined = False
        if words:
            parts.insert(first, words[0] if len(words) == 1 else WordsNode(tuple(words)))
        return _combine(AndNode, parts)

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


def iter_texts(query: QueryNode) -> Iterator[TextNode]:
    """Yield all words and phrases."""
    if isinstance(query, NotNode):
        yield from iter_texts(query.part)
    elif isinstance(query, TextNode):
        yield query
    else:
        for part in query.parts:
            yield from iter_texts(part)


def iter_positive_texts(query: QueryNode | None) -> Iterator[TextNode]:
    """Yield the words and phrases that a document must have, without those below a minus."""
    if isinstance(query, TextNode):
        yield query
    elif isinstance(query, (AndNode, OrNode, WordsNode)):
        for part in query.parts:
            yield from iter_positive_texts(part)


def replace_words(query: str, replacements: Mapping[str, str]) -> str:
    """Return a query with words replaced, but not those of fields and after a minus.

    >>> replace_words("crwaler -crwaler title:crwaler", {"crwaler": "crawler"})
    'crawler -crwaler title:crwaler'
    """
    return _FREE_WORD.sub(lambda match: replacements.get(match.group(), match.group()), query)


def make_verbatim_query(query: str, corrected: str) -> str:
    """Return a query that demands the words that ``corrected`` replaces.

    >>> make_verbatim_query("crwaler of pages", "crawler of pages")
    '+crwaler of pages'
    """
    pairs = zip(_FREE_WORD.findall(query), _FREE_WORD.findall(corrected), strict=False)
    return replace_words(query, {word: f"+{word}" for word, other in pairs if word != other})
