"""Byte format of the entries in the due index of an embedded table.

The key of an entry is ``slot`` (5 bytes: the due time in ms shifted right by 22, 0 for times before 1970), ``order`` (4
bytes, smaller for a better score, 0 for negative scores and NaN) and the URL. The *sort key* is the key without the
slot. The value is the due time (8 bytes). A long URL is truncated. For a truncated URL, and if several row keys map to
the same URL, a zero byte and a digest of the row key follow, and the value ends with the row key.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

from nutch2py.records.cells import decode_float
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.table.due_index import LAST_SLOT, SLOT_BYTES, slot_of
from nutch2py.url.keys import reverse_url, unreverse_url

LONGEST_URL = 480
"""Maximum bytes of a URL in the key of an entry."""
_TIME, _ORDER = struct.Struct(">q"), struct.Struct(">I")
_INFINITE = 0x7F800000
_DIGEST_BYTES = 16

DueEntry = tuple[bytes, bytes]


def next_slot(slot: bytes) -> bytes:
    """Return the slot after ``slot``, b"" after the last one."""
    number = int.from_bytes(slot, "big")
    return b"" if number == LAST_SLOT else (number + 1).to_bytes(SLOT_BYTES, "big")


def due_time_of(value: bytes) -> int:
    """Return the due time in the value of an entry."""
    return int(_TIME.unpack_from(value)[0])


def row_key_of(sort_key: bytes, value: bytes) -> bytes:
    """Return the row key of an entry with this sort key and value."""
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
    """Return the score of an entry; None for a negative score and for NaN."""
    order = _ORDER.unpack_from(sort_key)[0]
    return decode_float(_ORDER.pack(_INFINITE + 1 - order)) if order else None


def after_score(sort_key: bytes) -> bytes:
    """Return the first sort key after all entries of the same score."""
    return _ORDER.pack(_ORDER.unpack_from(sort_key)[0] + 1)


def is_after_url(sort_key: bytes, url: str) -> bool:
    """Return whether the entry at ``sort_key``, and all later ones of the same score, have URLs after ``url``."""
    return sort_key[_ORDER.size :][:LONGEST_URL] > (url.encode() + b"\0" + b"\xff" * _DIGEST_BYTES)[:LONGEST_URL]


def _score_order(score: bytes) -> bytes:
    bits = _ORDER.unpack_from(score)[0] if len(score) >= 4 else 0 if not score else _INFINITE + 1
    return _ORDER.pack(_INFINITE + 1 - bits if bits <= _INFINITE else 0)


def entry_prefix(time: bytes | None, score: bytes | None) -> DueEntry:
    """Return the prefix of an entry's key and its value for the cells of due time and score (b"" or None if missing).

    Cells of another type count as time 0 and as the best score, so that jobs read the row and report it.
    """
    return _cached_entry_prefix(time and time[: _TIME.size], score and score[: _ORDER.size])


@lru_cache(maxsize=4_096)
def _cached_entry_prefix(time: bytes | None, score: bytes | None) -> DueEntry:
    due = _TIME.unpack_from(time)[0] if time is not None and len(time) >= _TIME.size else 0
    return slot_of(due) + _score_order(score or b""), _TIME.pack(due)


def build_entries(rows: Iterable[tuple[bytes, DueEntry]]) -> Iterator[DueEntry]:
    """Yield the entries for row keys and entry prefixes; faster if keys of the same host are adjacent."""
    last, head, alone = b"", b"", True
    for key, (first, value) in rows:
        if not last or not key.startswith(last):
            end = key.find(b"/")
            last = key[: end + 1] if end >= 0 else key
            head, alone = _url_head(last[:end] if end >= 0 else last)
            if end >= 0:
                head += b"/"
            else:  # another key may start with this one
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
    """Return the URL prefix of keys with this prefix, and whether no other keys map to the same URLs."""
    try:
        head = unreverse_url(reversed_head.decode())
        return head.encode(), reverse_url(head).encode() == reversed_head
    except ValueError:  # not a URL to any job, so its position does not matter
        return reversed_head, False
