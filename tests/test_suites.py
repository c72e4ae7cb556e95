"""The suites of others: how their cases are counted, without their data."""

import ast
from pathlib import Path

import pytest

from tests.suites import mupdf, tika, w3lib
from tests.suites.__main__ import main, suites
from tests.suites.suite import Case, Goal, report

_TESTS = """
import pytest
from w3lib.html import get_base_url

class TestGetBaseUrl:
    @pytest.mark.parametrize(("path", "url"), [("/a", "http://h/a"), ("/b", "http://h/other")])
    def test_paths(self, path, url):
        assert get_base_url(f"<base href='{path}'>", "http://h/") == url, "why"
        assert get_base_url(f"<base href='{path}'>", "http://h/") != "", "why"

    def test_wrong(self):
        assert get_base_url(1) == ""
        raise LookupError("no")

class TestOther:
    def test_other(self):
        assert False
"""


def test_every_borrowed_assertion_becomes_a_case() -> None:
    found = list(w3lib._asserted(ast.parse(_TESTS)))
    assert [bool(left) for _, left in found] == [False, False, True, False, True, True]
    assert found[-1] == ("test_wrong", "LookupError: no")


def test_aim_is_reached_or_missed_by_its_part(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [Case("a", "1"), Case("a", "2", "why"), Case("b", "3", "because")]
    assert report(cases, [Goal("a", 0.5)], verbose=True)
    assert not report(cases, [Goal("a", 0.6)], verbose=False)
    assert not report([], [], verbose=False)
    printed = capsys.readouterr().out
    assert "a: 1/2 (50.0%, aim 50%: reached)" in printed
    assert "left: b: 3: because" in printed


def test_expectations_of_tika_tests_are_extracted() -> None:
    java = """
    @Test void a() { String xml = getXML("a.doc").xml; // assertContains("gone", xml);
        assertContains("one // two", xml); /* assertContains("gone", xml); */ assertContains("x" + "y", xml); }
    @Test void b() { getXML("b.doc"); context.set(PasswordProvider.class, m -> "test"); assertContains("gone", xml); }
    @Test void c() { EXTRACT_ALL_ALTERNATIVES_PARSER.parse(get("b.doc")); assertContains("gone", xml); }
    @Test void d() { getXML("b.doc"); assertContains("three", metadata.get("title")); assertContains("four", xml); }
    """
    found = tika.expectations(java, {"a.doc": Path("a"), "b.doc": Path("b")})
    assert [*found] == [("a.doc", "one // two"), ("a.doc", "xy"), ("b.doc", "four")]
    assert tika.reason("testOCR.jpg")
    assert not tika.reason("testWORD.docx")


def test_letters_are_compared_in_any_form_and_case() -> None:
    assert mupdf.letters("Oﬃce １, ") == mupdf.letters("office1")
    assert mupdf.letters("aab") - mupdf.letters("ab") == {"a": 1}


def test_every_suite_has_aims_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for module in suites().values():
        assert module.GOALS
        assert (module.__doc__ or "").strip()
    with pytest.raises(SystemExit):
        main(["no-such-suite"])
    assert "there is no suite no-such-suite" in capsys.readouterr().err
