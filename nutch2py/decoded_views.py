"""Views of a mapping that decodes all of its values at once, which is faster than one by one."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, ValuesView
from typing import Protocol, TypeVar

T = TypeVar("T")


class Decoding(Protocol[T]):
    """A mapping with all of its entries as a list."""

    def decoded(self) -> list[tuple[str, T]]:
        """Return the entries, values decoded."""


class Items(ItemsView[str, T]):
    """The entries."""

    _mapping: Decoding[T]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter(self._mapping.decoded())


class Values(ValuesView[T]):
    """The values."""

    _mapping: Decoding[T]

    def __iter__(self) -> Iterator[T]:
        return iter([value for _, value in self._mapping.decoded()])
