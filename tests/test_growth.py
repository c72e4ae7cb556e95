"""The measure of growth finds what grows, and nothing else."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import nutch2py.url
from tests.growth import assert_linear, patterns_of, repeated, repetitions

SHAPES = {"a": repeated("a"), "ab!": repeated("ab", tail="!")}


def test_assert_linear_linear_work_passes() -> None:
    assert_linear(lambda text: text.replace("a", "b"), SHAPES)
    assert_linear(sorted, SHAPES)


def test_assert_linear_value_error_is_accepted() -> None:
    def reject(text: str) -> None:
        raise ValueError(text)

    assert_linear(reject, SHAPES)


def test_assert_linear_other_error_is_raised() -> None:
    with pytest.raises(IndexError):
        assert_linear(lambda text: text[len(text)], SHAPES)


def test_assert_linear_quadratic_work_fails_and_names_shape() -> None:
    pattern = re.compile("a+b")
    with pytest.raises(AssertionError, match=r"grows faster than its input: aaa$"):
        assert_linear(pattern.search, {"ccc": repeated("c"), "aaa": repeated("a")}, 8192)


def test_assert_linear_quadratic_work_of_another_thread_fails() -> None:
    search = re.compile("a+b").search
    with ThreadPoolExecutor(1) as pool, pytest.raises(AssertionError, match=r"grows faster than its input: aaa$"):
        assert_linear(lambda text: pool.submit(search, text).result(), {"aaa": repeated("a")}, 8192, of_process=True)


def test_assert_linear_exponential_work_fails_before_hanging() -> None:
    with pytest.raises(AssertionError, match=r"leaps at .* characters: aaa!"):
        assert_linear(re.compile("(?:a|aa)+$").search, {"aaa!": repeated("a", tail="!")})


def test_shapes_have_requested_length() -> None:
    shapes = repetitions(["ab"], ["", "http://"], ["!"])
    assert shapes["'http://' + 'ab' * n + '!'"](20) == "http://abababababab!"
    assert all(abs(len(shape(1000)) - 1000) < 2 for shape in shapes.values())


def test_patterns_are_keyed_by_module_and_name() -> None:
    found = patterns_of(nutch2py.url)
    assert found["java_url:_PORT"].fullmatch("80")
    assert all(isinstance(pattern, re.Pattern) for pattern in found.values())
