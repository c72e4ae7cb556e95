"""Header names as Nutch stores them: misspellings of well-known names are corrected (``SpellCheckedMetadata``)."""

from __future__ import annotations

from collections.abc import Iterable

from nutch2py.support.bounded_cache import bounded_cache

# Nutch's vocabulary in the iteration order of its hash map: the first close match wins
_KNOWN_NAMES = (
    "Transfer-Encoding",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Disposition",
    "Content-MD5",
    "Content-Type",
    "Last-Modified",
    "Location",
)
_LETTERS_PER_EDIT = 3  # one edit per three letters


def _lower_letters(name: str) -> str:
    return "".join(c.lower() for c in name if c.isalpha())


def _java_hash(text: str) -> int:
    code = 0
    for c in text:
        code = (31 * code + ord(c)) & 0xFFFFFFFF
    return code ^ (code >> 16)


_VOCABULARY = dict(
    sorted(((_lower_letters(name), name) for name in _KNOWN_NAMES), key=lambda item: _java_hash(item[0]) & 15)
)


def _edit_distance(a: str, b: str, limit: int) -> int:
    """Return the Levenshtein distance of ``a`` and ``b``; any value >= ``limit`` if it is at least ``limit``."""
    if abs(len(a) - len(b)) >= limit:
        return limit
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
        if min(row) >= limit:
            return limit
    return row[-1]


@bounded_cache(8192, 64)
def canonical_name(name: str) -> str:
    """Return the well-known name that is meant, or the name as sent.

    >>> canonical_name("content_type"), canonical_name("Loction"), canonical_name("x-UPPER-lower")
    ('Content-Type', 'Location', 'x-UPPER-lower')
    """
    letters = _lower_letters(name)
    exact = _VOCABULARY.get(letters)
    if exact is not None:
        return exact
    limit = len(letters) // _LETTERS_PER_EDIT
    for known, canonical in _VOCABULARY.items():
        if _edit_distance(letters, known, limit) < limit:
            return canonical
    return name


def canonical_headers(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the last value by canonical name, as the column family ``h`` stores headers."""
    headers: dict[str, str] = {}
    for name, value in fields:
        headers[canonical_name(name)] = value
    return headers
