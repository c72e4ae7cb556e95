from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse, ParseFilter
from nutch2py.parser import parse_filters as filters
from nutch2py.parser.parse_filters import ParseFilters
from nutch2py.records.webpage import WebPage

PARSE = Parse("text", "", ())


def run(monkeypatch: pytest.MonkeyPatch, *results: Any) -> tuple[Parse, list[int]]:
    called: list[int] = []

    class Filter(ParseFilter):
        fields: frozenset[Any] = frozenset()

        def __init__(self, number: int) -> None:
            self.number = number

        def filter(self, url: str, page: WebPage, parse: Parse, document: Any) -> Any:
            called.append(self.number)
            return results[self.number](parse)

    monkeypatch.setattr(
        filters, "create_ordered_plugins", lambda *_: [Filter(number) for number in range(len(results))]
    )
    return ParseFilters(Configuration()).filter("http://h/", WebPage(), PARSE, None), called


def test_each_filter_receives_previous_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def shout(parse: Parse) -> Parse:
        return parse._replace(text=parse.text + "!")

    assert run(monkeypatch, shout, shout) == (PARSE._replace(text="text!!"), [0, 1])


def test_filter_returning_none_fails_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, called = run(monkeypatch, lambda _: None, lambda parse: parse)
    assert (parse.major, parse.args, called) == (2, ("Filter rejected the page",), [0])


def test_filter_failure_stops_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, called = run(monkeypatch, lambda parse: parse._replace(major=2), lambda parse: parse)
    assert (parse.major, called) == (2, [0])
