"""Where a row stands in the index of an embedded table, as bytes.

The key of an entry is ``slot`` (5 bytes, the due time in ms shifted right by 22, times before 1970 as 0), ``order`` (4
bytes, smaller for a better score; 0 for negative scores and such as are no numbers, which no filter need rank last)
and the URL. The value is the due time (8 bytes). Of a long URL the beginning stands there; then, and where other row
keys read as the same URL, a zero byte and a digest of the row key follow, and the value ends with the row key.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

from nutch2py.records.cells import decode_float
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.keys import reverse_url, unreverse_url

SLOT_BITS, SLOT_BYTES = 22, 5
_LAST_SLOT = (1 << 8 * SLOT_BYTES) - 1
HEAD_BYTES = SLOT_BYTES + 4
LONGEST_URL = 480
"""Bytes of a URL that an entry orders by."""
_TIME, _ORDER = struct.Struct(">q"), struct.Struct(">I")
_INFINITE = 0x7F800000
_DIGEST_BYTES = 16

DueEntry = tuple[bytes, bytes]


def slot(time: int) -> bytes:
    """Return the slot of a due time."""
    return min(max(time, 0) >> SLOT_BITS, _LAST_SLOT).to_bytes(SLOT_BYTES, "big")


def next_slot(of: bytes) -> bytes:
    """Return the slot behind, empty behind the last."""
    number = int.from_bytes(of, "big")
    return b"" if number == _LAST_SLOT else (number + 1).to_bytes(SLOT_BYTES, "big")


def due_time_of(value: bytes) -> int:
    """Return the due time in the value of an entry."""
    return int(_TIME.unpack_from(value)[0])


def row_key_of(sort_key: bytes, value: bytes) -> bytes:
    """Return the row key of an entry; ``sort_key`` is its key without the slot."""
    if len(value) > _TIME.size:
        return value[_TIME.size :]
    slash = sort_key.find(b"/", sort_key.index(b"://", _ORDER.size) + 3)
    if slash < 0:
        slash = len(sort_key)
    return _reverse_head(sort_key[_ORDER.size : slash]) + sort_key[slash:]


@bounded_cache(65_536, 256)
def _reverse_head(head: bytes) -> bytes:
    return reverse_url(head.decode()).encode()


def score_of(sort_key: bytes) -> float | None:
    """Return the score of an entry; None for a negative one, and for what is no number."""
    order = _ORDER.unpack_from(sort_key)[0]
    return decode_float(_ORDER.pack(_INFINITE + 1 - order)) if order else None


def after_score(sort_key: bytes) -> bytes:
    """Return the first place behind all of the same score."""
    return _ORDER.pack(_ORDER.unpack_from(sort_key)[0] + 1)


def is_after_url(sort_key: bytes, url: str) -> bool:
    """Tell whether the entry at ``sort_key``, and all of the same score behind it, have URLs that sort behind ``url``."""
    return sort_key[_ORDER.size :][:LONGEST_URL] > (url.encode() + b"\0" + b"\xff" * _DIGEST_BYTES)[:LONGEST_URL]


def _score_order(score: bytes) -> bytes:
    bits = _ORDER.unpack_from(score)[0] if len(score) >= 4 else 0 if not score else _INFINITE + 1
    return _ORDER.pack(_INFINITE + 1 - bits if bits <= _INFINITE else 0)


def entry_prefix(time: bytes | None, score: bytes | None) -> DueEntry:
    """Return the beginning of an entry's key and value, by the cells of due time and score: b"" or None for none.

    Cells of another type count as 0 and as the best score, so that whoever reads the row meets them.
    """
    return _cached_entry_prefix(time and time[: _TIME.size], score and score[: _ORDER.size])


@lru_cache(maxsize=65_536)
def _cached_entry_prefix(time: bytes | None, score: bytes | None) -> DueEntry:
    due = _TIME.unpack_from(time)[0] if time is not None and len(time) >= _TIME.size else 0
    return slot(due) + _score_order(score or b""), _TIME.pack(due)


def build_entries(rows: Iterable[tuple[bytes, DueEntry]]) -> Iterator[DueEntry]:
    """Yield the entries of row keys with their fronts; faster when keys with the same host stand together."""
    last, head, alone = b"", b"", True
    for key, (first, value) in rows:
        if not last or not key.startswith(last):
            end = key.find(b"/")
            last = key[: end + 1] if end >= 0 else key
            head, alone = _url_head(last[:end] if end >= 0 else last)
            if end >= 0:
                head += b"/"
            else:  # another key may begin so, and go on
                yield _build_entry(first, value, key, head, alone)
                last = b""
                continue
        url = head + key[len(last) :]
        if alone and len(url) <= LONGEST_URL:
            yield first + url, value
        else:
            yield _build_entry(first, value, key, url, alone)


def _build_entry(first: bytes, value: bytes, key: bytes, url: bytes, alone: bool) -> DueEntry:
    if alone and len(url) <= LONGEST_URL:
        return first + url, value
    return first + url[:LONGEST_URL] + b"\0" + blake2b(key, digest_size=_DIGEST_BYTES).digest(), value + key


@bounded_cache(65_536, 256)
def _url_head(reversed_head: bytes) -> tuple[bytes, bool]:
    """Return the beginning of the URLs whose keys begin so, and whether no other keys are read as these URLs."""
    try:
        head = unreverse_url(reversed_head.decode())
        return head.encode(), reverse_url(head).encode() == reversed_head
    except ValueError:  # no job can take it for a URL, wherever it stands
        return reversed_head, False
