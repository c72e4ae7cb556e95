"""The names of exceptions in what Java servers print, and only those."""

import time

import pytest

from nutch2py.java_exceptions import java_exceptions


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
def test_names(text, expected):
    assert java_exceptions(text) == expected


@pytest.mark.parametrize("piece", ["A", "a.", "A.", "a.A", "Failed 1 action: ", "a.AException: ", "Thu Nov 19,", ", A"])
def test_a_long_message_takes_time_in_proportion(piece):
    """Twice the text takes about twice the time; the best of several runs counts."""

    def seconds(length):
        text, best = piece * (length // len(piece)), float("inf")
        for _ in range(5):
            began = time.process_time()
            java_exceptions.__wrapped__(text)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(160_000) < 16 * max(seconds(40_000), 0.0005)
