"""WordMemory: what was made of words is remembered, within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")
_LONGEST, _MOST = 64, 300_000
"""Characters of a word that is remembered; words at a time."""


class WordMemory(dict[str, V]):
    """Word -> what ``made_of`` gives of it; fills itself, and starts afresh when it has grown too large.

    A dict, as a word that is known then costs no call of Python.
    """

    def __init__(self, made_of: Callable[[str], V]) -> None:
        super().__init__()
        self._made_of = made_of

    def __missing__(self, word: str) -> V:
        made = self._made_of(word)
        if len(word) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[word] = made
        return made
