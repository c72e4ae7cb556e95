"""Edits of a word as typing errors make them, each with its cost, and weighted edit distances."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

_KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_LETTERS_BY_RANGE = (
    ("\u0370", "\u03ff", "αβγδεζηθικλμνξοπρςστυφχψω"),
    ("\u0400", "\u052f", "абвгдежзийклмнопрстуфхцчшщъыьэюяёєіїў"),
    ("\u0590", "\u05ff", "אבגדהוזחטיךכלםמןנסעףפץצקרשת"),
    ("\u0600", "\u06ff", "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژکگی"),
)
"""Letters that may replace a letter of a script; in Latin scripts a to z, since terms have no accents."""

SWAP_COST = DOUBLE_COST = NEIGHBOUR_COST = 0.8
OTHER_COST = 1.0
"""Costs of an edit: a swap, a letter doubled or not doubled, a neighbour on the keyboard, any other letter."""
FIRST_LETTER_COST = 0.5
"""Additional cost of an edit of the first letter, which people seldom mistype."""


def _find_neighbours() -> frozenset[str]:
    """Return the pairs of letters whose keys touch, each in both orders."""
    pairs = set[str]()
    for row, letters in enumerate(_KEYBOARD_ROWS):
        pairs |= {letters[i : i + 2] for i in range(len(letters) - 1)}
        if row:
            above = _KEYBOARD_ROWS[row - 1]
            pairs |= {letter + above[i + offset] for i, letter in enumerate(letters) for offset in (0, 1)}
    return frozenset(pairs | {pair[::-1] for pair in pairs})


_NEIGHBOURS = _find_neighbours()


def letters_like(word: str) -> str:
    """Return the letters of a word's script."""
    letter = next((each for each in word if not each.isascii()), "a")
    return next((letters for first, last, letters in _LETTERS_BY_RANGE if first <= letter <= last), ascii_lowercase)


def iter_edits(word: str) -> Iterator[tuple[str, float]]:
    """Yield the words that a single edit makes of ``word``, each with its cost; a word may occur twice.

    An edit inserts, deletes, replaces or swaps letters.
    """
    letters = letters_like(word)
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        start = FIRST_LETTER_COST if at == 0 else 0.0
        around = before[-1:] + after[:1]
        for letter in letters:
            cost = DOUBLE_COST if letter in around else OTHER_COST
            yield before + letter + after, cost + start
        if not after:
            continue
        letter, rest = after[0], after[1:]
        yield before + rest, (DOUBLE_COST if letter in before[-1:] + rest[:1] else OTHER_COST) + start
        for other in letters:
            if other != letter:
                cost = NEIGHBOUR_COST if letter + other in _NEIGHBOURS else OTHER_COST
                yield before + other + rest, cost + start
        if rest and rest[0] != letter:
            yield before + rest[0] + letter + rest[1:], SWAP_COST + start


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the edit distance of two words, with swaps of neighbours (optimal string alignment).

    The result is at most ``limit + 1``.

    >>> edit_distance("crwaler", "crawler", 2), edit_distance("nutch", "notch", 2), edit_distance("abc", "xyz", 1)
    (1, 1, 2)
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    row = _last_row(one, other, limit)
    return min(row[-1], limit + 1) if row else limit + 1


def prefix_distance(start: str, word: str, limit: int) -> int:
    """Return the smallest edit distance of ``start`` and a prefix of ``word``, at most ``limit + 1``.

    >>> prefix_distance("configur", "confgiuraton", 2), prefix_distance("replic", "isolaton", 2)
    (1, 3)
    """
    row = _last_row(start, word[: len(start) + limit], limit)
    return min(*row, limit + 1) if row else limit + 1


def _last_row(one: str, other: str, limit: int) -> list[int]:
    """Return the distances of ``one`` to each prefix of ``other``; empty if all are greater than ``limit``."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before = before, row
        row = [i]
        for j, against in enumerate(other, 1):
            cost = min(row[-1] + 1, before[j] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return []
    return row
