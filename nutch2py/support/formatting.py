"""Formats numbers, times and names for people."""

from __future__ import annotations

import math
import unicodedata
from datetime import datetime

_INFINITIES = {math.inf: "∞", -math.inf: "−∞"}
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that are invisible or change the text direction."""


def format_compact(number: float) -> str:
    """Return a number in at most three digits and a letter for thousands.

    >>> [format_compact(n) for n in (0, 7, 999, 1000, 12_345, 999_950, 3_200_000, 1e15, 0.25, -1500)]
    ['0', '7', '999', '1k', '12.3k', '1M', '3.2M', '1e15', '0.25', '−1.5k']
    """
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return _INFINITIES[number]
    sign, size = ("−" if number < 0 else ""), abs(number)
    if size < 1:
        return f"{sign}{size:.2g}" if size else "0"
    for letter in ("", "k", "M", "G", "T"):
        if size < 999.5:
            return f"{sign}{_three_digits(size)}{letter}"
        size /= 1000
    return f"{number:.2g}".replace("e+", "e").replace("-", "−")


def _three_digits(size: float) -> str:
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    text = f"{size:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_number(number: float) -> str:
    """Return a number with all its digits: ``12,345``; a fraction with four significant digits."""
    if math.isnan(number) or math.isinf(number) or number == int(number):
        return f"{int(number):,}".replace("-", "−") if math.isfinite(number) else format_compact(number)
    return f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.1f}"


def format_bytes(count: float) -> str:
    """Return bytes: ``512 B``, ``1.5 kB``, ``3 GB``."""
    text = format_compact(count)
    return f"{text[:-1]} {text[-1]}B" if text[-1:].isalpha() else f"{text} B"


def format_duration(ms: float) -> str:
    """Return a duration in its largest units.

    >>> times = (0, 80, 1500, 59_999, 61_000, 3_600_000, 90_000_000, 2_592_000_000, 70_000_000_000)
    >>> [format_duration(ms) for ms in times]
    ['0 ms', '80 ms', '1.5 s', '1 min', '1 min 1 s', '1 h', '1 d 1 h', '30 d', '2 y 80 d']
    """
    if ms < 0:
        return f"−{format_duration(-ms)}"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for units in (((86400 * 365, "y"), (86400, "d")), ((86400, "d"), (3600, "h")), ((3600, "h"), (60, "min")),
                  ((60, "min"), (1, "s"))):  # fmt: skip
        (large, name), (little, other) = units
        if whole >= large:
            rest = whole % large // little
            return f"{whole // large:,} {name}" + (f" {rest} {other}" if rest else "")
    return f"{whole} s"


def format_time(ms: int) -> str:
    """Return a time (ms since 1970) in the machine's time zone: ``2026-11-23 06:40:12``."""
    try:
        return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # a row can hold any number
        return f"{ms} ms since 1970"


def format_percent(part: float, whole: float) -> str:
    """Return a share in per cent; never 0 % for a non-zero part, nor 100 % for an incomplete one.

    >>> [format_percent(*each) for each in ((0, 0), (0, 9), (1, 100_000), (1, 3), (99_999, 100_000), (9, 9))]
    ['–', '0 %', '< 1 %', '33 %', '> 99 %', '100 %']
    """
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "< 1 %"
    return "> 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def valid_utf8(text: str) -> str:
    """Return a text that UTF-8 can encode: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def escape_invisible(text: str) -> str:
    r"""Escape characters that are invisible or change the text direction, such as controls and bidi marks.

    >>> escape_invisible("a\u202eb\n北")
    'a\\u202eb\\u000a北'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_character(c) if unicodedata.category(c) in _INVISIBLE_CATEGORIES else c for c in text)


def _escape_character(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def display_width(text: str) -> int:
    """Return the width of text in terminal columns; a wide East Asian character takes two."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, width: int) -> str:
    """Return escaped text of at most ``width`` columns, with ``…`` in place of its middle if it is longer.

    >>> shorten("www.a-very-long-name.example.org", 20)
    'www.a-ver…xample.org'
    """
    text = escape_invisible(text[: 4 * width] + text[-4 * width :] if len(text) > 8 * width else text)
    if display_width(text) <= width:
        return text
    end = text[-((width - 1) // 2) - 1 :]
    while display_width(end) > width // 2:
        end = end[1:]
    start = text[:width]
    while display_width(start) + display_width(end) >= width:
        start = start[:-1]
    return f"{start}…{end}"
