"""Charts of every kind with zero, one, some and ten thousand values, and with malicious names."""

from __future__ import annotations

import random
from collections.abc import Iterator

from nutch2py.charts.bar_chart import draw_bars
from nutch2py.charts.chart import Chart
from nutch2py.charts.gantt_chart import GanttBar, draw_gantt
from nutch2py.charts.line_chart import draw_lines
from nutch2py.charts.network_graph import GraphEdge, draw_graph
from nutch2py.charts.rate_chart import RateInterval, draw_rates
from nutch2py.charts.stacked_bars import Bar, draw_histogram, draw_stacked_bars
from nutch2py.support.formatting import format_bytes, format_duration
from nutch2py.support.histogram import Histogram

BEGAN = 1_763_870_000_000
PARTS = ("fetched", "redirected", "gone", "failed")
HOSTILE = (
    "</text></svg><script>document.title='ran'</script>",
    "\"' onload=\"document.title='ran'",
    "\u202egro.elpmaxe\u2066\u0000\u0007\ufffe",
    "שלום.עולם.example",
    "北京奥林匹克运动会组织委员会.例子.测试" * 3,
    "a" * 8192,
    "&lt;b&gt;&#0;]]><!--",
    "",
)
COUNTS = (0, 1, 2, 7, 40, 10_000)


def render_charts(count: int, names: tuple[str, ...] = ()) -> Iterator[Chart]:
    """Yield a chart of each kind with ``count`` values; labels are taken from ``names`` in turn, if any."""
    chance = random.Random(count)

    def name(number: int, else_: str) -> str:
        return names[number % len(names)] + str(number // len(names) or "") if names else f"{else_}{number}"

    def parts() -> list[float]:
        return [chance.randint(500, 3000), chance.randint(0, 300), chance.randint(0, 200), chance.randint(0, 900)]

    grown = [BEGAN + 7_200_000 * number for number in range(count)]
    yield draw_lines("Pages over time", ("known", "fetched"),
                [(at, (90 * number, 40 * number)) for number, at in enumerate(grown)], "none yet")  # fmt: skip
    yield draw_rates(
        "Rates", PARTS, [RateInterval(at, at + chance.randint(0, 7_000_000), parts()) for at in grown], "none yet"
    )
    yield draw_stacked_bars("Rounds", PARTS, [Bar(name(number, ""), parts()) for number in range(count)], "none yet")
    yield draw_bars(
        "Hosts", PARTS, [Bar(name(number, "www.example.org/"), parts()) for number in range(count)], "none yet"
    )
    works = [
        GanttBar(
            name(number % 5, "fetch"),
            at,
            at + chance.randint(0, 7_000_000),
            1 + 3 * (number % 9 == 8),
            name(number, ""),
        )
        for number, at in enumerate(grown)
    ]
    yield draw_gantt("Jobs", works, "none yet", [(1, "finished"), (4, "failed")])
    edges = [
        GraphEdge(name(number, "host"), name(chance.randrange(count), "host"), chance.randint(1, 500))
        for number in range(count)
    ]
    edges += [GraphEdge(name(0, "host"), name(1, "host"), 7)] if count else []
    yield draw_graph("Links", edges, {name(number, "host"): number for number in range(count)}, "none yet")
    buckets = min(count, 60)
    for title, shown in (("Times", format_duration), ("Sizes", format_bytes)):
        counts = (*(chance.randint(1, 9**number) for number in range(buckets)), buckets)
        bounds = tuple(2.0**number for number in range(buckets + 1))
        yield draw_histogram(title, Histogram(bounds, counts), "none yet", shown)
