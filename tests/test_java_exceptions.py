"""The names of exceptions in what Java servers print, and only those."""

import pytest

from nutch2py.support.java_exceptions import find_java_exceptions
from tests.growth import assert_linear, repetitions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("no exception at all", set()),
        ("java.lang.StackOverflowError", {"StackOverflowError"}),
        ("java.lang.StackOverflowErrors", set()),
        ("java.lang.RuntimeException: java.lang.StackOverflowError\n\tat a.B.c(D.java:1)",
         {"RuntimeException", "StackOverflowError"}),
        ("a.B$InnerException: x", {"InnerException"}),
        ("a.AException: of b.BException: c", {"AException"}),
        ("a.AException: b.BException: c.CException", {"AException", "BException", "CException"}),
        ("a.AException: x\n\tat b.BException.<init>(B.java:1)\nCaused by: c.CError\n\tSuppressed: d.DException: y",
         {"AException", "CError", "DException"}),
    ],
)  # fmt: skip
def test_java_exception_names_are_extracted(text, expected):
    assert find_java_exceptions(text) == expected


def test_long_message_time_is_linear():
    pieces = ["A", "a.", "A.", "a.A", "Failed 1 action: ", "a.AException: ", ", A", "\nCaused by: a.BError", "x("]
    assert_linear(find_java_exceptions.__wrapped__, repetitions(pieces, ["", "Thu Nov 19 "], ["", "Exception"]))
