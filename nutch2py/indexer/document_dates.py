"""Dates of documents: parses dates in response headers, and formats them for Solr."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The formats that Nutch's MoreIndexingFilter tries after that of RFC 9110, in its order; without a zone they are UTC.
_DATE_FORMATS = (
    "%a, %d %b %Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%a,%d %b %Y %H:%M:%S",
    "%a, %d-%b-%y %H:%M:%S",
    "%A, %d-%b-%y %H:%M:%S",
    "%d %b %Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S.%f",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d",
    "%Y.%m.%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%b %d %Y %H:%M:%S.",
    "%b %d %Y %H:%M:%S",
    "%d.%m.%Y; %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d %m %Y %H:%M:%S",
    "%d.%m.%Y",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
)
# The zones of RFC 822, and others that servers use.
_ZONE_HOURS = {
    "GMT": 0, "UTC": 0, "UT": 0, "Z": 0, "WET": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
    "PST": -8, "PDT": -7, "CET": 1, "MET": 1, "CEST": 2, "MEST": 2, "BST": 1, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9,
}  # fmt: skip
_ZONE_SUFFIX = re.compile(r"\s*(?:(?<![A-Z])([A-Z]{1,4})|(?:GMT|UTC)?([+-])(\d\d):?(\d\d))$", re.IGNORECASE)
_ZONE_BEFORE_YEAR = re.compile(r"^(.* \d\d:\d\d:\d\d) ([A-Za-z]{2,4}|[+-]\d\d:?\d\d) (\d{4})$")


def parse_date(text: str) -> int | None:
    """Return the time of a header such as Last-Modified in ms since 1970, None for an invalid date.

    >>> parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), parse_date("2018-09-18T17:59:00Z"), parse_date("soon")
    (784111777000, 1537293540000, None)
    """
    text = " ".join(text.split())[:64]
    swapped = _ZONE_BEFORE_YEAR.match(text)  # the format of date(1): "Tue Sep 18 17:59:00 UTC 2018"
    if swapped:
        text = f"{swapped[1]} {swapped[3]} {swapped[2]}"
    zone: timezone = UTC
    bare = text
    zone_match = _ZONE_SUFFIX.search(text)
    if zone_match and zone_match[1]:
        name = zone_match[1].upper()
        if name in _ZONE_HOURS:
            zone, bare = timezone(timedelta(hours=_ZONE_HOURS[name])), text[: zone_match.start()]
    elif zone_match and ":" in text[: zone_match.start()]:
        offset = timedelta(hours=int(zone_match[3]), minutes=int(zone_match[4]))
        if offset < timedelta(hours=24):
            zone = timezone(-offset if zone_match[2] == "-" else offset)
            bare = text[: zone_match.start()]
    for form in _DATE_FORMATS:
        try:
            moment = datetime.strptime(bare, form).replace(tzinfo=zone)
        except ValueError:
            continue
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    return None


def format_solr_date(milliseconds: int) -> str:
    """Return a time in Solr's format, UTC with milliseconds; a time out of range becomes the nearest valid one.

    >>> format_solr_date(784111777001)
    '1994-11-06T08:49:37.001Z'
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        moment = (datetime.max if milliseconds > 0 else datetime.min).replace(tzinfo=UTC)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
