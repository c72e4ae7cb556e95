"""SVG of charts: well-formed with any name, bounded with any number of values, and deterministic."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from xml.etree import ElementTree as ET

import pytest

from nutch2py.charts import axes
from nutch2py.charts.bar_chart import draw_bars
from nutch2py.charts.line_chart import draw_lines
from nutch2py.charts.network_graph import GraphEdge, draw_graph, force_layout
from nutch2py.charts.rate_chart import RateInterval, draw_rates
from nutch2py.charts.stacked_bars import Bar, draw_histogram, draw_stacked_bars
from nutch2py.support import formatting
from nutch2py.support.histogram import Histogram
from tests.charts.samples import BEGAN, COUNTS, HOSTILE, PARTS, render_charts

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 500_000
"""Maximum characters of a chart."""


@pytest.mark.parametrize("name", ["nutch2py.support.formatting", "nutch2py.charts.axes"])
def test_documented_charts_are_current(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("names", [(), HOSTILE], ids=["plain", "hostile"])
def test_any_values_and_labels_are_drawn(count: int, names: tuple[str, ...]) -> None:
    for chart in render_charts(count, names):
        figure = chart.html()
        assert "ran</" not in re.sub(r"&lt;.*?&gt;", "", figure)
        tree = ET.fromstring(figure)
        if not count:
            assert "none yet" in figure
            assert "<svg" not in figure
            continue
        drawing = ET.fromstring(chart.svg)
        assert drawing.find(f"{SVG}title").text == chart.title  # type: ignore[union-attr]
        assert drawing.find(f"{SVG}desc").text == formatting.escape_invisible(chart.description)  # type: ignore[union-attr]
        assert {element.tag for element in tree.iter()}.isdisjoint({"script", f"{SVG}script", "b"})
        assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on")]
        assert len(figure) < LARGEST
        assert len(chart.table.rows) <= 50
        assert len({len(row) for row in chart.table.rows}) == 1
        assert "nan" not in chart.svg


def test_same_values_draw_same_chart() -> None:
    assert [p.html() for p in render_charts(40)] == [p.html() for p in render_charts(40)]


def test_values_appear_in_table_marks_and_summary() -> None:
    chart = draw_stacked_bars("Rounds", PARTS, [Bar("1", [1200, 0, 30, 4]), Bar("2", [7, 0, 0, 0])], "none")
    assert chart.description == "2 bars; total: 1,207 fetched, 30 gone, 4 failed."
    assert [name for _, name in chart.legend] == ["fetched", "gone", "failed"]
    assert chart.table.rows[0] == ["1", "1,200", "0", "30", "4"]
    assert "<title>1: 30 gone</title>" in chart.svg
    series = draw_lines("Pages", ("known",), [(BEGAN, (5,)), (BEGAN + 1000, (9,))], "none")
    assert series.description.endswith("at the end known 9.")
    spans = draw_histogram("Time", Histogram((0, 1, 10, 100), (0, 3, 8, 0)), "none")
    assert spans.description == "11 pages, most of them 10 – 100: 8."
    assert [row[0] for row in spans.table.rows] == ["1 – 10", "10 – 100"]
    hosts = draw_bars("Hosts", ("pages",), [Bar(f"h{n}", [n]) for n in range(20)], "none", max_bars=3)
    assert hosts.description == "Largest: h19 with 19 (10 % of the total)."
    assert "and 16 more with 136" in hosts.svg
    links = draw_graph(
        "Links", [GraphEdge("a", "b", 3), GraphEdge("b", "a", 2), GraphEdge("a", "a", 9)], {"a": 4}, "none"
    )
    assert links.table.rows == [["a", "b", "3"], ["b", "a", "2"]]
    assert "<title>a – b: 5 links</title>" in links.svg


def test_rate_is_amount_per_minute_of_interval() -> None:
    intervals = [RateInterval(BEGAN, BEGAN + 120_000, (60, 0)), RateInterval(BEGAN + 180_000, BEGAN + 180_000, (0, 5))]
    chart = draw_rates("Throughput", PARTS[:2], intervals, "none", unit="pages")
    assert "2 min: 60 fetched, 30 per minute</title>" in chart.svg
    assert "5 redirected, 300 per minute</title>" in chart.svg  # at least one second
    assert chart.y_title == "pages per minute"
    assert [row[2:] for row in chart.table.rows] == [["60", "0"], ["0", "5"]]
    widths = [float(width) for width in re.findall(r'<rect[^>]*width="([0-9.]+)%"', chart.svg)]
    assert widths == [66.667, 0.3]
    many = [RateInterval(BEGAN + 1000 * at, BEGAN + 1000 * at + 1000, (1,)) for at in range(1000)]
    assert draw_rates("Many", ("one",), many, "none").svg.count("<rect") == 250


def test_axis_titles_stand_next_to_drawing() -> None:
    chart = draw_stacked_bars("Rounds", PARTS, [Bar("1", [2, 0, 0, 0])], "none", y_title="<URLs>", x_title="round")
    assert '<p class="axis y">&lt;URLs&gt;</p><svg' in chart.html()
    assert '</svg><p class="axis x">round</p>' in chart.html()


def test_histogram_of_one_bucket_is_sentence() -> None:
    chart = draw_histogram("PageRank", Histogram((0, 0.1, 0.3), (0, 7, 0)), "none")
    assert (chart.svg, chart.description) == ("", "All 7 pages: 0.1 – 0.3.")


def test_linked_nodes_are_drawn_closer() -> None:
    """Two cliques of hosts with one link between them."""
    edges = [(a, (a + 1) % 6, 5.0) for a in range(6)] + [(a, 6 + (a - 5) % 6, 5.0) for a in range(6, 12)]
    places = force_layout(12, [*edges, (0, 6, 1.0)])

    def apart(a: int, b: int) -> float:
        return sum((x - y) ** 2 for x, y in zip(places[a], places[b], strict=True)) ** 0.5

    linked = [apart(a, b) for a, b, _ in edges]
    others = [apart(a, b) for a in range(1, 6) for b in range(7, 12)]
    assert max(linked) < sum(others) / len(others)
    assert all(0 <= share <= 1 for place in places for share in place)
    assert min(apart(a, b) for a in range(12) for b in range(a)) > 0.03


@pytest.mark.parametrize("length", [0, 1, 999, 61_000, 5_000_000, 90_000_000, 10**9, 10**10, 10**11, 10**12])
def test_time_axis_has_unique_ticks(length: int) -> None:
    ticks = axes.time_ticks(BEGAN, BEGAN + length)
    assert 1 <= len(ticks) <= 9
    assert all(0 <= tick.position <= 1 for tick in ticks)
    assert len({tick.text for tick in ticks}) == len(ticks)


@pytest.mark.parametrize("greatest", [0, 0.003, 0.7, 1, 3, 4, 9, 10, 11, 999, 1001, 123_456_789, 1e18])
def test_value_axis_ticks_cover_maximum(greatest: float) -> None:
    found = axes.axis_levels(greatest)
    assert found[0] == 0
    assert found[-1] >= greatest
    assert 2 <= len(found) <= 5
    assert len({formatting.format_compact(level) for level in found}) == len(found)
