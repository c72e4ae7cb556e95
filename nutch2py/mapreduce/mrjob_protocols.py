"""Line formats between map and reduce: a key that sorts bytewise, a tab, and a JSON value.

Keys are not quoted, so that the bytewise order of lines is the order of keys on every runner. Tab, line feed and
carriage return are escaped, because Hadoop streaming ends keys and lines at them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache
from itertools import count
from operator import methodcaller
from typing import Any

import orjson

_DOUBLE, _BITS = struct.Struct(">d"), struct.Struct(">Q")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPE_TABLE = str.maketrans(_ESCAPES)
_UNESCAPE = {escaped: plain for plain, escaped in _ESCAPES.items()}
_ESCAPED = re.compile(r"\\[\\tnr]")


def escape_key(key: str) -> str:
    """Return ``key`` without tab, line feed and carriage return."""
    return key.translate(_ESCAPE_TABLE) if "\t" in key or "\n" in key or "\r" in key or "\\" in key else key


def unescape_key(key: str) -> str:
    """Reverse :func:`escape_key`."""
    return _ESCAPED.sub(lambda match: _UNESCAPE[match[0]], key) if "\\" in key else key


_PARTITION_DIGITS = 5  # digits of the partition in its key
_FIRST_SUFFIX_CHAR, _SUFFIX_CHARS = ord("0"), 43  # characters after the digits, up to "Z": none needs escaping


@cache
def partition_key(number: int, partitions: int) -> str:
    """Return the key of a group for reduce task ``number`` of ``partitions``; keys sort by the number.

    Hadoop's KeyFieldBasedPartitioner uses the hash of the key. With plain numbers, two of twelve partitions would share
    a task with others while two tasks stay idle. So a suffix after the digits adjusts the hash to the number.
    """
    name = f"{number:0{_PARTITION_DIGITS}d}"
    for rest in count():
        key = name
        while rest:
            rest, kind = divmod(rest - 1, _SUFFIX_CHARS)
            key += chr(_FIRST_SUFFIX_CHAR + kind)
        if _hadoop_hash(key) % partitions == number % partitions:
            return key
    raise AssertionError


def partition_of_key(key: str) -> str:
    """Return the number in a key of :func:`partition_key`, as text."""
    return key[:_PARTITION_DIGITS]


def _hadoop_hash(key: str) -> int:
    value = 0
    for byte in key.encode("ascii"):
        value = 31 * value + byte
    return value & 0x7FFFFFFF  # signed 32-bit to unsigned


class KeyValueProtocol:
    """mrjob protocol: raw key, tab, JSON."""

    def __init__(self) -> None:
        self._last_raw = b""
        self._last_key = ""

    def read(self, line: bytes) -> tuple[str, Any]:
        """Decode a line; a repeated key is decoded once."""
        raw, _, value = line.partition(b"\t")
        if raw != self._last_raw:
            self._last_raw, self._last_key = raw, unescape_key(raw.decode("utf-8", "surrogateescape"))
        return self._last_key, orjson.loads(value)

    def write(self, key: str, value: Any) -> bytes:
        """Encode a line."""
        return escape_key(key).encode("utf-8", "surrogateescape") + b"\t" + orjson.dumps(value)


class SortedTextProtocol(KeyValueProtocol):
    """Raw key, tab, raw text, both escaped: for jobs that sort their values (``SORT_VALUES``)."""

    def read(self, line: bytes) -> tuple[str, str]:
        """Decode a line. Hadoop sorts by key and value as two key fields, and appends a tab."""
        raw, _, value = line.partition(b"\t")
        if raw != self._last_raw:
            self._last_raw, self._last_key = raw, unescape_key(raw.decode("utf-8", "surrogateescape"))
        return self._last_key, unescape_key(value.removesuffix(b"\t").decode("utf-8", "surrogateescape"))

    def write(self, key: str, value: str) -> bytes:
        """Encode a line."""
        line = f"{key}\t{value}"
        if "\\" in line or "\n" in line or "\r" in line or line.count("\t") != 1:
            line = f"{escape_key(key)}\t{escape_key(value)}"
        return line.encode("utf-8", "surrogateescape")


class SortedBytesProtocol:
    """The lines of :class:`SortedTextProtocol`, encoded in bulk; reading splits them without decoding.

    For jobs with so many pairs that the cost per pair dominates.
    """

    read = staticmethod(methodcaller("partition", b"\t"))
    """Splits a line into key, tab and value: escaped bytes, perhaps with trailing blanks."""

    def __init__(self) -> None:
        self._write = SortedTextProtocol().write

    def write(self, key: str, value: str | bytes) -> bytes:
        """Encode a line; bytes are lines of :func:`encode_sorted_lines`, and stay unchanged."""
        return value if isinstance(value, bytes) else self._write(key, value)


def encode_sorted_lines(keys: Sequence[str], values: Sequence[str], prefix: str = "", suffix: str = "") -> bytes:
    """Return pairs as lines of :class:`SortedTextProtocol`, without the end of the last line.

    ``prefix`` and ``suffix`` are added to each value.
    """
    text = f"{suffix}\n".join(map(f"\t{prefix}".join, zip(keys, values, strict=True))) + suffix
    if "\\" in text or "\r" in text or text.count("\n") != len(keys) - 1 or text.count("\t") != len(keys):
        pairs = zip(keys, values, strict=True)
        text = "\n".join([f"{escape_key(key)}\t{escape_key(prefix + value + suffix)}" for key, value in pairs])
    return text.encode("utf-8", "surrogateescape")


def decode_sorted_text(escaped: bytes | str) -> str:
    """Decode a key or value of :class:`SortedBytesProtocol`; text of other protocols stays unchanged."""
    return escaped if isinstance(escaped, str) else unescape_key(escaped.decode("utf-8", "surrogateescape"))


class StreamedTextProtocol:
    """mrjob protocol: text of any number of lines, for people, through Hadoop streaming.

    Hadoop streaming replaces a carriage return by a line feed; :func:`unescape_streamed_text` restores it.
    """

    def read(self, line: bytes) -> tuple[None, bytes]:
        """Return the text of a line."""
        return None, unescape_streamed_text(line)

    def write(self, _: object, text: bytes) -> bytes:
        """Return the text with its carriage returns escaped."""
        return text.replace(b"\x1b", b"\x1b[").replace(b"\r", b"\x1br")


def unescape_streamed_text(data: bytes) -> bytes:
    """Reverse :class:`StreamedTextProtocol`."""
    return data.replace(b"\x1br", b"\r").replace(b"\x1b[", b"\x1b")


def descending_sort_key(score: float) -> str:
    """Return 16 hexadecimal digits that sort bytewise in descending order of the score (NaN last)."""
    bits: int = _BITS.unpack(_DOUBLE.pack(score))[0]
    ascending = bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | (1 << 63)
    if score != score:
        ascending = 0
    return f"{ascending ^ 0xFFFFFFFFFFFFFFFF:016x}"
