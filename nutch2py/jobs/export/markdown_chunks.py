"""Markdown of pages for retrieval: front matter, and chunks by headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|[^\W_]{1,6}|[^\w\s]|_+"
)  # a piece of a word has about six letters in the vocabularies of language models


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a language model makes of a text: pieces of words, CJK characters, punctuation.

    >>> estimate_tokens("Crawl the documentation. 搜索")
    8
    """
    return sum(1 for _ in _TOKEN.finditer(text))


@dataclass
class MarkdownChunk:
    """A part of a page below its headings.

    Attributes:
        headings: The headings above the text, from the highest level.
        text: Markdown, without these headings.
        tokens: Estimated number of tokens of the text.
    """

    headings: list[str]
    text: str
    tokens: int = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = estimate_tokens(self.text)


def split_markdown(markdown: str, max_tokens: int) -> Iterator[MarkdownChunk]:
    """Yield the chunks of a page: one per heading, divided between blocks where it has more than ``max_tokens`` tokens.

    A block is a paragraph, a list, a table or fenced code. A longer block is a chunk by itself: it is not cut.
    """
    headings: list[tuple[int, str]] = []
    blocks: list[str] = []
    for block in _iter_blocks(markdown):
        found = _HEADING.fullmatch(block)
        if found is None:
            blocks.append(block)
            continue
        yield from _join_blocks([text for _, text in headings], blocks, max_tokens)
        blocks = []
        level = len(found[1])
        headings = [each for each in headings if each[0] < level] + [(level, found[2])]
    yield from _join_blocks([text for _, text in headings], blocks, max_tokens)


def _iter_blocks(markdown: str) -> Iterator[str]:
    """Yield headings and blocks of text between blank lines; fenced code is one block."""
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        opening = _FENCE.match(line)
        if fence:
            lines.append(line)
            if opening and opening[1].startswith(fence) and line.strip() == opening[1]:
                yield "\n".join(lines)
                lines, fence = [], ""
        elif not opening and line.strip() and not _HEADING.fullmatch(line):
            lines.append(line)
        else:
            if lines:
                yield "\n".join(lines)
            lines = []
            if opening:
                fence, lines = opening[1], [line]
            elif line.strip():
                yield line
    if lines:
        yield "\n".join(lines)


def _join_blocks(headings: list[str], blocks: list[str], max_tokens: int) -> Iterator[MarkdownChunk]:
    texts: list[str] = []
    tokens = 0
    for block in blocks:
        size = estimate_tokens(block)
        if texts and tokens + size > max_tokens:
            yield MarkdownChunk(headings, "\n\n".join(texts))
            texts, tokens = [], 0
        texts.append(block)
        tokens += size
    if texts:
        yield MarkdownChunk(headings, "\n\n".join(texts))
