"""Narrowing of optional values that the program's own logic guarantees to be set."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None, name: str) -> T:
    """Return ``value``; raise :class:`RuntimeError` with its name if it is None, which is a bug of the caller.

    Replaces ``assert``, which ``python -O`` removes.
    """
    if value is None:
        raise RuntimeError(f"{name} is not set")
    return value
