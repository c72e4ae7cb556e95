"""Caches whose size has a bound in bytes: what is long is not remembered.

``functools.lru_cache`` bounds the number of its entries only, and whoever makes the keys (a host, a header's name, an
answer's text) makes them as long as the limits of URLs and headers let him: thousands of them are gigabytes.

word_memory: what was made of words is remembered, within a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")
MAX_KEY_LENGTH = 256
"""Characters or bytes of a key that is remembered; a host has 253 at most."""


class CacheDecorator(Protocol):
    """A decorator for functions of one argument."""

    def __call__(self, function: Callable[[K], V], /) -> Callable[[K], V]:
        """Return the function with its memory."""
        ...


def bounded_cache(
    maxsize: int, max_key_length: int = MAX_KEY_LENGTH, size: Callable[[Any], int] = len
) -> CacheDecorator:
    """Remember what a function of one argument returned for the ``maxsize`` latest arguments.

    An argument whose ``size`` is above ``max_key_length`` is not remembered; None is taken for the shortest.
    """

    def caching(function: Callable[[K], V]) -> Callable[[K], V]:
        remembered = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def called(key: K) -> V:
            if key is not None and size(key) > max_key_length:
                return function(key)
            return remembered(key)

        return called

    return caching


class BoundedDict(dict[str, V]):
    """Key -> what ``made_of`` gives of it; fills itself, and starts afresh when it holds ``most``.

    A key that is longer than ``longest`` is not remembered. A dict, as what is known then costs no call of Python.
    """

    def __init__(self, factory: Callable[[str], V], max_entries: int, max_key_length: int) -> None:
        super().__init__()
        self._factory, self._max_entries, self._max_key_length = factory, max_entries, max_key_length

    def __missing__(self, key: str) -> V:
        made = self._factory(key)
        if len(key) <= self._max_key_length:
            if len(self) >= self._max_entries:
                self.clear()
            self[key] = made
        return made


_MAX_WORD_LENGTH, _MAX_WORDS = 64, 300_000
"""Characters of a word that is remembered; words at a time."""


def word_cache(factory: Callable[[str], V]) -> BoundedDict[V]:
    """Return a memory of what ``factory`` gives of words."""
    return BoundedDict(factory, _MAX_WORDS, _MAX_WORD_LENGTH)
