"""HTTP dates as Nutch's HttpDateFormat reads and writes them: ``EEE, dd MMM yyyy HH:mm:ss zzz``.

Reading is lenient as Java's SimpleDateFormat is: names in full or short in any case, a wrong day of the week, numbers
of any width that roll over (day 32, hour 25), spaces before a part, and anything after the date.
"""

from __future__ import annotations

import re

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
_ZONE_MINUTES = {
    "gmt": 0, "utc": 0, "wet": 0, "west": 60, "bst": 60, "cet": 60, "cest": 120, "eet": 120, "eest": 180, "msk": 180,
    "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420,
    "akst": -540, "akdt": -480, "hst": -600, "jst": 540, "kst": 540, "hkt": 480, "sgt": 480,
}  # fmt: skip


def _name_pattern(full: tuple[str, ...]) -> str:
    return "|".join(full) + "|" + "|".join(name[:3] for name in full)


_DATE = re.compile(
    rf"[ \t]*(?:{_name_pattern(_DAYS)}), [ \t]*(?P<day>-?\d+)"
    rf" [ \t]*(?P<month>{_name_pattern(_MONTHS)}) [ \t]*(?P<year>-?\d+)"
    r" [ \t]*(?P<hour>-?\d+):[ \t]*(?P<minute>-?\d+):[ \t]*(?P<second>-?\d+) [ \t]*"
    rf"(?:(?P<sign>[+-])(?P<offset>\d{{4}})|gmt(?P<gsign>[+-])(?P<ghour>\d\d?):?(?P<gminute>\d\d)"
    rf"|(?P<zone>{'|'.join(sorted(_ZONE_MINUTES, key=len, reverse=True))}))",
    re.IGNORECASE | re.ASCII,
)
_FIRST_GREGORIAN_DAY = -141427  # 15 October 1582, in days since 1970: Java uses the Julian calendar before it


def _days_since_epoch(year: int, month: int, day: int) -> int:
    """Return days since 1 January 1970."""
    y, m = (year, month) if month > 2 else (year - 1, month + 12)
    julian = 365 * y + y // 4 + (153 * (m - 3) + 2) // 5 + day - 1
    gregorian = julian - y // 100 + y // 400 - 719468
    return gregorian if gregorian >= _FIRST_GREGORIAN_DAY else julian - 719470


def _offset_minutes(match: re.Match[str]) -> int:
    if match["sign"]:
        return int(f"{match['sign']}1") * (int(match["offset"][:2]) * 60 + int(match["offset"][2:]))
    if match["gsign"]:
        return int(f"{match['gsign']}1") * (int(match["ghour"]) * 60 + int(match["gminute"]))
    return _ZONE_MINUTES[match["zone"].lower()]


def parse_http_date(text: str) -> int:
    """Return milliseconds since 1970; raise ValueError when it is not a date of this form.

    >>> parse_http_date("Sun, 6 Nov 1994 08:49:37 GMT")
    784111777000
    """
    match = _DATE.match(text)
    if match is None or any(len(match[name]) > 9 for name in ("day", "year", "hour", "minute", "second")):
        raise ValueError(f"not an HTTP date: {text[:60]!r}")
    days = _days_since_epoch(int(match["year"]), _MONTH_NUMBERS[match["month"][:3].lower()], int(match["day"]))
    minutes = int(match["hour"]) * 60 + int(match["minute"]) - _offset_minutes(match)
    time = (days * 86400 + minutes * 60 + int(match["second"])) * 1000
    if abs(time) >= 2**63:
        raise ValueError(f"no such time: {text[:60]!r}")
    return time


def format_http_date(time: int) -> str:
    """Return the date of a time in milliseconds since 1970, years 1 to 9999.

    >>> format_http_date(784111777000)
    'Sun, 06 Nov 1994 08:49:37 GMT'
    """
    from email.utils import formatdate

    return formatdate(time // 1000, usegmt=True)
