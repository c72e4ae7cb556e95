from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.support.http_date import format_http_date, parse_http_date


def test_parse_http_date_public_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    listed = cases("http_date")
    passed = 0
    for case in listed:
        if case["args"]["fn"] == "toString":
            assert format_http_date(case["input"]) == case["expect"]
        elif isinstance(case["expect"], dict):
            with pytest.raises(ValueError, match="not an HTTP date"):
                parse_http_date(case["input"])
        else:
            assert parse_http_date(case["input"]) == case["expect"]
        passed += 1
    print(f"http_date: {passed}/{len(listed)}")
    assert passed == len(listed) > 0


# each was worked out by the rules of SimpleDateFormat("EEE, dd MMM yyyy HH:mm:ss zzz", US), lenient
@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("thursday,  1 january 1970 0:0:0 gmt", 0),
        ("Mon, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT; length=5", 0),
        ("Thu, 01 Jan 1970 00:00:61 UTC", 61_000),
        ("Wed, 32 Dec 1969 00:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 PST", 8 * 3600_000),
        ("Thu, 01 Jan 1970 08:00:00 +0800", 0),
        ("Thu, 01 Jan 1970 08:00:00 GMT+08:00", 0),
        ("Thu, 15 Oct 1582 00:00:00 GMT", -12219292800000),
        ("Thu, 04 Oct 1582 00:00:00 GMT", -12219379200000),
    ],
)
def test_parse_http_date_lenient_forms_are_accepted(text: str, time: int) -> None:
    assert parse_http_date(text) == time


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 9999999999 08:49:37 GMT",
        "Sun, 06 Nov 999999999 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "Sun, ٠٦ Nov 1994 08:49:37 GMT",
    ],
)
def test_parse_http_date_other_forms_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an HTTP date|no such time"):
        parse_http_date(text)


@given(st.integers(-12219292800, 253402300799))
def test_formatted_date_round_trips(seconds: int) -> None:
    assert parse_http_date(format_http_date(seconds * 1000 + 999)) == seconds * 1000
