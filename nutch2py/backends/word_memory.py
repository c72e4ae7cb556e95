"""word_memory: what was made of words is remembered, within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nutch2py.short_cache import ShortMemory

V = TypeVar("V")
_LONGEST, _MOST = 64, 300_000
"""Characters of a word that is remembered; words at a time."""


def word_memory(made_of: Callable[[str], V]) -> ShortMemory[V]:
    """Return a memory of what ``made_of`` gives of words."""
    return ShortMemory(made_of, _MOST, _LONGEST)
