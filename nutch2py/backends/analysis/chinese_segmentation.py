"""Segmentation of Chinese: jieba's words, finely or coarsely, or single characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError


class CharacterSegmenter:
    """Segmenter with jieba's interface in which every character is a word."""

    def cut(self, run: str, hmm: bool = True) -> list[str]:
        """Return the characters."""
        return [*run]

    def cut_for_search(self, run: str, hmm: bool = True) -> list[str]:
        """Return the characters."""
        return [*run]

    def tokenize(self, run: str, mode: str = "search", hmm: bool = True) -> Iterator[tuple[str, int, int]]:
        """Yield each character with its start and end."""
        for offset, character in enumerate(run):
            yield character, offset, offset + 1

    def add_word(self, word: str, frequency: int, kind: str) -> None:
        """Ignore a user word: every character is a word already."""


class ChineseGranularity(NamedTuple):
    """Granularity of Chinese segmentation.

    ``fine_pages``: words within words are indexed, too (奥运 of 奥运会). ``fine_queries``: a compound in a query is
    searched by its parts, at any position, instead of as a whole.
    """

    fine_pages: bool = True
    fine_queries: bool = False

    @classmethod
    def from_conf(cls, conf: Configuration) -> ChineseGranularity:
        """Read ``index.chinese.pages`` and ``index.chinese.queries``: fine or coarse."""
        return cls(_is_fine(conf, "index.chinese.pages", "fine"), _is_fine(conf, "index.chinese.queries", "coarse"))


DEFAULT_GRANULARITY = ChineseGranularity()


def _is_fine(conf: Configuration, name: str, default: str) -> bool:
    value = conf.get_trimmed(name, default).lower()
    if value not in ("fine", "coarse"):
        raise ConfigurationError(f"{name} is {value!r}: write fine or coarse")
    return value == "fine"
