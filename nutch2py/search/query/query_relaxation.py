"""Functions on trees of queries: the words that belong together, and relaxed queries."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.search.query.query_language import AndNode, NotNode, OrNode, QueryNode, TextNode, WordsNode

MAX_WORDS_NEXT_TO_QUOTES = 3
"""Words without quotes up to which quotes demand; in a sentence they are punctuation."""


def is_demanded(text: TextNode) -> bool:
    """Return whether quotes, ``+`` or ``AND`` demand a text without field."""
    return (text.phrase or text.required) and not text.field


def relax(node: QueryNode, phrases_only: bool = False) -> QueryNode:
    """Return a query whose words without field demand nothing; words of one level become one node."""
    if isinstance(node, OrNode):
        return OrNode(tuple(relax(part, phrases_only) for part in node.parts))
    if isinstance(node, TextNode):
        is_changed = is_demanded(node) and not (phrases_only and node.required)
        if not is_changed:
            return node
        relaxed = tuple(TextNode(word) for word in node.text.split())
        return relaxed[0] if len(relaxed) == 1 else WordsNode(relaxed)
    if isinstance(node, AndNode):
        parts = [relax(part, phrases_only) for part in node.parts]
        words = [text for part in parts for text in (part.parts if isinstance(part, WordsNode) else (part,))]
        free = [text for text in words if isinstance(text, TextNode) and is_free(text)]
        rest = [part for part in parts if not isinstance(part, WordsNode) and part not in free]
        joined = WordsNode(tuple(free))
        return AndNode((joined, *rest)) if rest and free else joined if free else AndNode(tuple(rest))
    return node


def is_free(text: TextNode) -> bool:
    """Return whether a text has neither field nor quotes nor operator."""
    return not (text.field or text.phrase or text.required)


def iter_free_texts(node: QueryNode) -> Iterator[TextNode]:
    """Yield the words without field, quotes and operator that belong together, in the order typed."""
    if isinstance(node, TextNode):
        if not (node.phrase or node.field):
            yield node
    elif isinstance(node, WordsNode):
        yield from node.parts
    elif isinstance(node, AndNode):
        for part in node.parts:
            if not isinstance(part, NotNode | OrNode):
                yield from iter_free_texts(part)
