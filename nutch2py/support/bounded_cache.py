"""Caches with a bound in bytes: long keys are not cached.

``functools.lru_cache`` bounds only the number of entries. Keys from the web (hosts, header names, response texts) can
be as long as the limits of URLs and headers allow, and thousands of them are gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")
MAX_KEY_LENGTH = 256
"""Maximum length of a cached key in characters or bytes; a host name has at most 253."""


class CacheDecorator(Protocol):
    """A decorator for functions of one argument."""

    def __call__(self, function: Callable[[K], V], /) -> Callable[[K], V]:
        """Return the function with its cache."""
        ...


def bounded_cache(
    maxsize: int, max_key_length: int = MAX_KEY_LENGTH, size: Callable[[Any], int] = len
) -> CacheDecorator:
    """Cache the results of a function of one argument for the ``maxsize`` latest arguments.

    An argument longer than ``max_key_length`` is not cached; None counts as the empty string.
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
    """Dictionary that computes missing values with ``factory``, and is cleared when it reaches ``max_entries``.

    A key longer than ``max_key_length`` is not cached. It is a dict because a lookup then costs no Python call.
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
"""Maximum length of a cached word in characters, and maximum number of words."""


def word_cache(factory: Callable[[str], V]) -> BoundedDict[V]:
    """Return a cache of the results of ``factory`` for words."""
    return BoundedDict(factory, _MAX_WORDS, _MAX_WORD_LENGTH)
