"""Caches whose size has a bound in bytes: what is long is not remembered.

``functools.lru_cache`` bounds the number of its entries only, and whoever makes the keys (a host, a header's name, an
answer's text) makes them as long as the limits of URLs and headers let him: thousands of them are gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")
LONGEST = 256
"""Characters or bytes of a key that is remembered; a host has 253 at most."""


class Caching(Protocol):
    """A decorator for functions of one argument."""

    def __call__(self, function: Callable[[K], V], /) -> Callable[[K], V]:
        """Return the function with its memory."""
        ...


def short_cache(maxsize: int, longest: int = LONGEST, size: Callable[[Any], int] = len) -> Caching:
    """Remember what a function of one argument returned for the ``maxsize`` latest arguments.

    An argument whose ``size`` is above ``longest`` is not remembered; None is taken for the shortest.
    """

    def caching(function: Callable[[K], V]) -> Callable[[K], V]:
        remembered = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def called(key: K) -> V:
            if key is not None and size(key) > longest:
                return function(key)
            return remembered(key)

        return called

    return caching


class ShortMemory(dict[str, V]):
    """Key -> what ``made_of`` gives of it; fills itself, and starts afresh when it holds ``most``.

    A key that is longer than ``longest`` is not remembered. A dict, as what is known then costs no call of Python.
    """

    def __init__(self, made_of: Callable[[str], V], most: int, longest: int) -> None:
        super().__init__()
        self._made_of, self._most, self._longest = made_of, most, longest

    def __missing__(self, key: str) -> V:
        made = self._made_of(key)
        if len(key) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[key] = made
        return made
