"""Cursors of the search API: an index's own cursor, with the time of the search when the search weighs freshness."""

from __future__ import annotations

import re

from nutch2py.errors import InputError

_TIMED_CURSOR = re.compile(r"(\d{1,12})~(.*)", re.DOTALL)


def invalid_cursor() -> InputError:
    """Return the error for a cursor that no result contained."""
    return InputError("the cursor is not one that was given with a result")


def wrap_cursor(cursor: str, now: int) -> str:
    """Return an index's cursor combined with the time of the search; "" after the last result.

    Args:
        cursor: The index's cursor.
        now: Time of the search in seconds since 1970.

    >>> wrap_cursor("20", 1_800_000_000), unwrap_cursor("1800000000~20")
    ('1800000000~20', (1800000000, '20'))
    """
    return cursor and f"{now}~{cursor}"


def unwrap_cursor(cursor: str) -> tuple[int, str]:
    """Return the time of the search and the index's cursor; raise InputError for a cursor without a time."""
    match = _TIMED_CURSOR.fullmatch(cursor)
    if match is None:
        raise invalid_cursor()
    return int(match[1]), match[2]
