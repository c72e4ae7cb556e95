"""Drawings as text: well-formed whatever the names are, bounded whatever the number of values, the same each time."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from xml.etree import ElementTree as ET

import pytest

from nutch2py.pictures import axes, words
from nutch2py.pictures.bars import bars
from nutch2py.pictures.graph import Edge, graph, layout
from nutch2py.pictures.lines import lines
from nutch2py.pictures.stacks import Bar, Bucket, histogram, stacks
from tests.pictures.samples import BEGAN, COUNTS, HOSTILE, PARTS, pictures

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 500_000
"""Characters of a figure, whatever is in it."""


@pytest.mark.parametrize("name", ["words", "axes"])
def test_the_examples_are_true(name: str) -> None:
    result = doctest.testmod(import_module(f"nutch2py.pictures.{name}"))
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("names", [(), HOSTILE], ids=["plain", "hostile"])
def test_any_number_of_values_and_any_name(count: int, names: tuple[str, ...]) -> None:
    for picture in pictures(count, names):
        figure = picture.html()
        assert "ran</" not in re.sub(r"&lt;.*?&gt;", "", figure)
        tree = ET.fromstring(figure)
        if not count:
            assert "none yet" in figure
            assert "<svg" not in figure
            continue
        drawing = ET.fromstring(picture.drawing)
        assert drawing.find(f"{SVG}title").text == picture.title  # type: ignore[union-attr]
        assert drawing.find(f"{SVG}desc").text == words.legible(picture.told)  # type: ignore[union-attr]
        assert {element.tag for element in tree.iter()}.isdisjoint({"script", f"{SVG}script", "b"})
        assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on")]
        assert len(figure) < LARGEST
        assert len(picture.table.rows) <= 50
        assert len({len(row) for row in picture.table.rows}) == 1
        assert "nan" not in picture.drawing


def test_the_same_values_make_the_same_picture() -> None:
    assert [p.html() for p in pictures(40)] == [p.html() for p in pictures(40)]


def test_numbers_are_in_the_table_the_marks_and_the_sentence() -> None:
    picture = stacks("Rounds", PARTS, [Bar("1", [1200, 0, 30, 4]), Bar("2", [7, 0, 0, 0])], "none")
    assert picture.told == "2 bars; in all 1,207 fetched, 30 gone, 4 failed."
    assert [name for _, name in picture.legend] == ["fetched", "gone", "failed"]
    assert picture.table.rows[0] == ["1", "1,200", "0", "30", "4"]
    assert "<title>1: 30 gone</title>" in picture.drawing
    series = lines("Pages", ("known",), [(BEGAN, (5,)), (BEGAN + 1000, (9,))], "none")
    assert series.told.endswith("at the end known 9.")
    spans = histogram("Time", [Bucket(0, 1, 0), Bucket(1, 10, 3), Bucket(10, 100, 8), Bucket(100, 1000, 0)], "none")
    assert spans.told == "11 pages, most of them 10 – 100: 8."
    assert [row[0] for row in spans.table.rows] == ["1 – 10", "10 – 100"]
    hosts = bars("Hosts", ("pages",), [Bar(f"h{n}", [n]) for n in range(20)], "none", most=3)
    assert hosts.told == "h19 has most, 19 (10 % of what is shown)."
    assert "and 16 more with 136" in hosts.drawing
    links = graph("Links", [Edge("a", "b", 3), Edge("b", "a", 2), Edge("a", "a", 9)], {"a": 4}, "none")
    assert links.table.rows == [["a", "b", "3"], ["b", "a", "2"]]
    assert "<title>a – b: 5 links</title>" in links.drawing


def test_what_is_linked_lies_nearer_than_what_is_not() -> None:
    """Two circles of hosts with one link between them."""
    edges = [(a, (a + 1) % 6, 5.0) for a in range(6)] + [(a, 6 + (a - 5) % 6, 5.0) for a in range(6, 12)]
    places = layout(12, [*edges, (0, 6, 1.0)])

    def apart(a: int, b: int) -> float:
        return sum((x - y) ** 2 for x, y in zip(places[a], places[b], strict=True)) ** 0.5

    linked = [apart(a, b) for a, b, _ in edges]
    others = [apart(a, b) for a in range(1, 6) for b in range(7, 12)]
    assert max(linked) < sum(others) / len(others)
    assert all(0 <= share <= 1 for place in places for share in place)
    assert min(apart(a, b) for a in range(12) for b in range(a)) > 0.03


@pytest.mark.parametrize("length", [0, 1, 999, 61_000, 5_000_000, 90_000_000, 10**9, 10**10, 10**11, 10**12])
def test_an_axis_of_time_has_some_marks_that_do_not_repeat(length: int) -> None:
    ticks = axes.times(BEGAN, BEGAN + length)
    assert 1 <= len(ticks) <= 9
    assert all(0 <= tick.place <= 1 for tick in ticks)
    assert len({tick.text for tick in ticks}) == len(ticks)


@pytest.mark.parametrize("greatest", [0, 0.003, 0.7, 1, 3, 4, 9, 10, 11, 999, 1001, 123_456_789, 1e18])
def test_levels_reach_the_greatest_and_are_few(greatest: float) -> None:
    found = axes.levels(greatest)
    assert found[0] == 0
    assert found[-1] >= greatest
    assert 2 <= len(found) <= 5
    assert len({words.short(level) for level in found}) == len(found)
