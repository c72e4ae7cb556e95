import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.indexer import document_dates
from nutch2py.indexer.document_dates import format_solr_date, parse_date
from nutch2py.records import cells, document
from nutch2py.records.document import NutchDocument, clean_text, format_java_float


@pytest.mark.parametrize("module", [document, document_dates])
def test_docstring_examples_hold(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_values_keep_insertion_order():
    doc = NutchDocument()
    doc.add("type", "text/html")
    doc.add("id", "x")
    doc.add("type", "text")
    assert list(doc) == [("type", ["text/html", "text"]), ("id", ["x"])]
    assert doc.get("type") == "text/html"
    assert doc.get("none") is None
    assert doc.remove("type") == ["text/html", "text"]
    assert "type" not in doc


def test_json_round_trips_document():
    doc = NutchDocument({"id": ["x"], "anchor": ["a", "b"], "boost": ["0.5"]}, 0.5)
    assert doc.to_json() == {"id": "x", "anchor": ["a", "b"], "boost": "0.5"}
    assert NutchDocument.from_json(doc.to_json()) == doc


def test_copy_changes_independently():
    doc = NutchDocument({"id": ["x"]})
    doc.copy().add("id", "y")
    assert doc.values("id") == ["x"]


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_is_valid_utf8_and_stable(text):
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned


def is_forbidden(code):
    control = code < 0x20 and chr(code) not in "\t\n\r"
    return control or 0xD800 <= code < 0xE000 or 0xFDD0 <= code < 0xFDF0 or code & 0xFFFE == 0xFFFE


def test_character_cleaning_is_context_free():
    for plane in range(0, 0x110000, 0x1000):
        codes = range(plane, plane + 0x1000)
        kept = [chr(code) for code in codes if not is_forbidden(code)]
        assert [chr(code) for code in codes if clean_text(chr(code))] == kept
        assert clean_text("a\n" + "".join(map(chr, codes)) + "b") == "a\n" + "".join(kept) + "b"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.1, "0.1"),
        (1234567.0, "1234567.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.00099999, "9.9999E-4"),
        (-2.5, "-2.5"),
        (16777216.0, "1.6777216E7"),
        (1e39, "Infinity"),
        (2.0**0.5, "1.4142135"),
    ],
)
def test_floats_are_formatted_like_java(value, expected):
    assert format_java_float(value) == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_formatted_float_round_trips(value):
    assert cells.float32(float(format_java_float(value))) == value


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 UTC 1994",
        "Sun, 06 Nov 1994 09:49:37 +0100",
        "1994-11-06T08:49:37Z",
        "1994-11-06T09:49:37+01:00",
        "1994.11.06 08:49:37",
        "06.11.1994; 08:49:37",
        "Nov 06 1994 03:49:37 EST",
    ],
)
def test_server_date_forms_are_parsed(text):
    assert parse_date(text) == 784111777000


@pytest.mark.parametrize("text", ["", "this is not a valid date", "0", "Sun, 99 Nov 1994 08:49:37 GMT", "Z", "+9999"])
def test_invalid_date_returns_none(text):
    assert parse_date(text) is None


def test_http_date_cases(cases):
    passed = total = 0
    for case in cases("http_date"):
        if case["args"]["fn"] != "toLong":
            continue  # the fetcher formats HTTP dates
        total += 1
        expected = None if isinstance(case["expect"], dict) else case["expect"]
        assert parse_date(case["input"]) == expected
        passed += 1
    print(f"http_date (reading): {passed}/{total}")


@given(st.text(max_size=40))
def test_arbitrary_text_as_date_does_not_fail(text):
    parse_date(text)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**63 - 1, "9999-12-31T23:59:59.999Z"),
        (-(2**63), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_formatted_for_solr(time, expected):
    assert format_solr_date(time) == expected
